//! Tests of what the recordings show.

mod lines;
mod loops;
mod made;
mod patterns;
mod real;
mod sentences;
mod stacks;
mod standstill;
mod timelines;
