//! Why bytes were not granted, with the figures to plan by.

use crate::format_bytes;

/// A request the ledger did not grant. Nothing changed: what the asker held, it still holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// More than there is in all: no waiting helps. For a grow, `asked` is the size it would have reached.
    #[error("{holder} needs {} and the budget is {}", format_bytes(*.asked), format_bytes(*.budget))]
    TooLarge { holder: String, asked: u64, budget: u64 },

    /// Not now. `free` is what this holder could have got, after those who wait before it.
    #[error(
        "{holder} needs {} and {} of {} are free ({})",
        format_bytes(*.asked), format_bytes(*.free), format_bytes(*.budget), list(.held)
    )]
    Exhausted {
        holder: String,
        asked: u64,
        free: u64,
        budget: u64,
        held: Vec<(String, u64)>,
    },

    /// Never: those who would have to give back wait themselves, or have pinned.
    #[error(
        "{holder} would wait for ever for {}: {} of {} are free and the rest is held by those who stay or wait too ({})",
        format_bytes(*.asked), format_bytes(*.free), format_bytes(*.budget), list(.held)
    )]
    Deadlock {
        holder: String,
        asked: u64,
        free: u64,
        budget: u64,
        held: Vec<(String, u64)>,
    },

    /// The job is being stopped.
    #[error("{holder} was not granted {}: the job is stopping", format_bytes(*.asked))]
    Closed { holder: String, asked: u64 },
}

impl Refused {
    /// Who asked.
    pub fn holder(&self) -> &str {
        match self {
            Refused::TooLarge { holder, .. }
            | Refused::Exhausted { holder, .. }
            | Refused::Deadlock { holder, .. }
            | Refused::Closed { holder, .. } => holder,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Refused::TooLarge { asked, .. } => Some(format!(
                "a budget of {} at least is needed for this alone",
                format_bytes(*asked)
            )),
            Refused::Exhausted {
                asked, free, budget, ..
            }
            | Refused::Deadlock {
                asked, free, budget, ..
            } => {
                let least = budget.saturating_add(asked.saturating_sub(*free));
                Some(format!(
                    "a budget of {} would have been enough here",
                    format_bytes(least)
                ))
            }
            Refused::Closed { .. } => None,
        }
    }
}

fn list(held: &[(String, u64)]) -> String {
    if held.is_empty() {
        return "nobody holds any".to_owned();
    }
    let parts: Vec<String> = held
        .iter()
        .map(|(name, bytes)| format!("{name} {}", format_bytes(*bytes)))
        .collect();
    parts.join(" · ")
}
