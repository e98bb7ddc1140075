//! Parquet and Arrow files through the public surface: values, pieces, budgets, broken files.

mod attacks;
mod budget;
mod files;
mod pieces;
mod real;
mod values;
