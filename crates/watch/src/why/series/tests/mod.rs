//! Tests of what the recordings show.

mod lines;
mod loops;
mod made;
mod patterns;
mod real;
mod sentences;
mod stacks;
mod steps;
mod thrashing;
mod timelines;

use tidegate_runs::Frame;

use crate::why::{Case, Growth, Pattern, Scripts};

/// What is said of a run whose sources are not known.
fn pattern(case: &Case) -> Option<Pattern> {
    super::pattern(case, &Scripts::default())
}

fn growth(case: &Case) -> Vec<Growth> {
    super::growth(case, &Scripts::default())
}

fn growing_now(case: &Case) -> Option<Frame> {
    super::growing_now(case, &Scripts::default())
}
