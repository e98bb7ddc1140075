//! The run store as its users meet it: several commands at once, killed writers, damaged files.

mod flight;
mod log;
mod others;
mod store;
mod writers;
