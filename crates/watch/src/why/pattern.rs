//! What the memory of a run did over time.

use serde::{Deserialize, Serialize};

/// The shape of a run's memory, with the figures that show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    pub kind: PatternKind,
    /// One sentence with figures.
    pub sentence: String,
    /// Bytes a second, where it grew steadily.
    pub rate: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// It grows from step to step and gives nothing back.
    Leak,
    /// Forked workers copy what they had in common; resident sizes hide it.
    CopyOnWrite,
    /// One large step, or a few.
    Burst,
    /// Up and down, with a bottom that stays.
    Sawtooth,
    /// It was high once and stays there though little of it is in use: the allocator keeps it. Said only of a run that
    /// tells what it has in use; from outside it looks like a burst or a plateau that stays.
    Retention,
    /// What grows is the page cache, which the kernel takes back when it needs it.
    PageCache,
    /// A cache that filled up and stays.
    Plateau,
    /// Much is free inside the process, in pieces too small to use or give back. From outside this cannot be told, and
    /// [`pattern`](super::pattern()) never does; it is for whoever can ask the allocator.
    Fragmentation,
    Steady,
}

impl PatternKind {
    pub fn as_str(self) -> &'static str {
        match self {
            PatternKind::Leak => "leak",
            PatternKind::CopyOnWrite => "copy_on_write",
            PatternKind::Burst => "burst",
            PatternKind::Sawtooth => "sawtooth",
            PatternKind::Retention => "retention",
            PatternKind::PageCache => "page_cache",
            PatternKind::Plateau => "plateau",
            PatternKind::Fragmentation => "fragmentation",
            PatternKind::Steady => "steady",
        }
    }
}
