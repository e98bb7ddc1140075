//! A column's way into numbers, one file per encoder.

pub mod scale;

pub use scale::Scale;
