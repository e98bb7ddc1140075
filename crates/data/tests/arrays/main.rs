//! Arrays as their users meet them: every format, every way to keep them, the same samples in the same order.

mod allocations;
mod attacks;
mod below;
mod errors;
mod feeds;
mod finding;
mod formats;
#[path = "../support/group.rs"]
mod group;
mod halves;
mod help;
mod keeping;
mod labels;
mod memory;
mod pressed;
