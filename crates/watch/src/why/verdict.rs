//! A verdict: why a run ended, how sure that is, what shows it, and what would have helped.

use serde::{Deserialize, Serialize};
use tidegate_runs::Frame;

use super::cause::Cause;
use super::devices::DeviceSummary;
use super::pattern::Pattern;

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub cause: Cause,
    pub grade: Grade,
    /// One sentence that claims no more than the grade.
    pub sentence: String,
    /// What shows it, the strongest first.
    pub evidence: Vec<Evidence>,
    /// What the memory did, where enough of it was seen.
    pub pattern: Option<Pattern>,
    /// Where it grew, the most first.
    pub growth: Vec<Growth>,
    /// What to change, the most effective first.
    pub remedies: Vec<Remedy>,
    /// What the accelerators did, where they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceSummary>,
    /// Other things worth knowing: warnings, hints that are no causes.
    pub notes: Vec<String>,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// What is left allows several answers.
    Unknown,
    /// Everything that was seen fits, but another cause would look the same.
    Likely,
    /// A counter or a message that nothing else produces.
    Proven,
}

impl Grade {
    pub fn as_str(self) -> &'static str {
        match self {
            Grade::Unknown => "unknown",
            Grade::Likely => "likely",
            Grade::Proven => "proven",
        }
    }
}

/// A raw line and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub standing: Standing,
    /// As it was read, or what was looked for.
    pub text: String,
    /// The file, counter or system call; "log line 120", "wait status".
    pub source: String,
}

/// What became of looking for a piece of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Observed,
    /// Seen, but not all of it: a counter of more than this run, a log that was cut.
    Partial,
    /// It should be there and could not be read.
    Unavailable,
    /// This machine does not have it.
    Unsupported,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Observed => "observed",
            Standing::Partial => "partial",
            Standing::Unavailable => "unavailable",
            Standing::Unsupported => "unsupported",
        }
    }
}

/// A place in the code, and what memory grew by while it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    pub place: Frame,
    pub bytes: u64,
    /// Of all growth that was seen with a stack.
    pub share: f64,
    /// The calls that led there, the outermost first, where it is not the user's own code that grew.
    pub within: Vec<Frame>,
    /// The cell of a notebook, from 1.
    #[serde(default)]
    pub cell: Option<u32>,
    /// The line itself, where its file could be read.
    #[serde(default)]
    pub code: Option<String>,
}

/// A change that would have helped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// In a few words, for a list.
    pub title: String,
    /// Where to change something.
    pub place: Option<Frame>,
    /// The line as it stands, and as it should.
    pub before: Option<String>,
    pub after: Option<String>,
    /// An option or a command that does it.
    pub command: Option<String>,
    /// About so many bytes less at the peak, where that can be said.
    pub saves: Option<u64>,
    /// Memory grew there. Without it this is a hint.
    pub measured: bool,
    pub why: String,
}
