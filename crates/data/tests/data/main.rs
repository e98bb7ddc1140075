//! Tables as their readers meet them: every dialect, every size of row, every way a file can be broken.

mod attacks;
mod dialects;
mod encoders;
mod faults;
mod features;
mod filters;
mod fits;
mod help;
mod looks;
mod passes;
mod roles;
mod round_trip;
