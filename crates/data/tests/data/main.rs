//! Tables as their readers meet them: every dialect, every size of row, every way a file can be broken.

mod attacks;
mod dialects;
mod encoders;
mod faults;
mod fits;
mod help;
mod passes;
mod roles;
mod round_trip;
