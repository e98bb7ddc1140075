//! The command line as a person uses it: the real program on real files, judged by its exit code, by what it
//! prints and by what it leaves behind.

mod help;
mod images;
mod redact;
mod tables;
mod through;
mod training;

mod below;
mod boost;
mod categories;
mod choice;
mod csv;
mod curves;
mod data_errors;
mod devices;
mod disk;
mod explain;
mod file_errors;
mod foreign;
mod job;
mod life;
mod memory;
mod networks;
mod packs;
mod plan;
mod predict;
mod predict_sources;
mod pressure;
mod real;
mod refused;
mod resume;
mod row_networks;
mod runs;
mod same_model;
mod sizes;
mod ui;
mod usage;
