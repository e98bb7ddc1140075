//! The command line as a person uses it: the real program on real files, judged by its exit code, by what it
//! prints and by what it leaves behind.

mod help;
mod tables;

mod csv;
mod data_errors;
mod disk;
mod job;
mod life;
mod memory;
mod predict;
mod runs;
mod same_model;
mod sizes;
mod usage;
