//! The run store as its users meet it: several commands at once, killed writers, damaged files.

mod flight;
mod holders;
mod log;
mod logs;
mod metrics;
mod others;
mod overviews;
mod pages;
mod store;
mod writers;
