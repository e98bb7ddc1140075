//! A message that a program is known to print, what it means, and where its figures stand.
//!
//! The tables of wordings are data: a row says which words a line must hold, in which order, and where. That a line merely
//! talks about a message is mostly told from where in the line the words stand.

use tidegate_memory::format_bytes;

use super::size::{Unit, shape_bytes, size_at, size_before};
use crate::why::{Cause, Grade};

/// A row of a table.
pub(super) struct Wording {
    /// All of these stand in the line, in this order.
    says: &'static [&'static str],
    place: Place,
    /// With any of these in the line it means something else.
    unless: &'static [&'static str],
    pub(super) cause: Cause,
    pub(super) grade: Grade,
    /// Without figures and full stop.
    sentence: &'static str,
    unit: Unit,
    asked: Mark,
    free: Mark,
    total: Mark,
    /// Added up; what is free is then the total less this.
    used: &'static [Mark],
    pid: Mark,
    /// So many lines after this one belong to the message.
    pub(super) further: usize,
    /// Of all the words.
    pairs: Pairs,
}

/// Which pairs of bytes a text has, as bits. A text without all pairs of some words does not hold them: this saves looking
/// for hundreds of wordings in each line, and made reading a log of 40,000 lines take 0.2 s instead of 1.1 s.
#[derive(Clone, Copy)]
pub(super) struct Pairs([u64; 4]);

impl Pairs {
    const NONE: Pairs = Pairs([0; 4]);

    pub(super) const fn of(text: &str) -> Pairs {
        Pairs::NONE.and(text)
    }

    const fn and(mut self, text: &str) -> Pairs {
        let bytes = text.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            let bit = (bytes[at - 1] as usize * 37 + bytes[at] as usize * 3) % 256;
            self.0[bit / 64] |= 1 << (bit % 64);
            at += 1;
        }
        self
    }

    fn include(&self, words: &Pairs) -> bool {
        self.0
            .iter()
            .zip(words.0)
            .all(|(text, words)| text & words == words)
    }
}

/// Where the first words stand.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// At the start, or after what ends in a colon, a bracket or a bar: a time stamp, a level, the name of an exception, a path.
    Start,
    Anywhere,
    /// The line says nothing else.
    Whole,
}

/// Where in the message a figure stands.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    Nowhere,
    After(&'static str),
    Before(&'static str),
    /// To be worked out from the shape and the type of an array.
    Shape,
}

/// The figures of one message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) asked: Option<u64>,
    pub(super) free: Option<u64>,
    pub(super) total: Option<u64>,
    pub(super) used: Option<u64>,
    pub(super) pid: Option<i32>,
}

/// A row with the rest still to say: proven, at the start of the line, no figures.
pub(super) const fn wording(says: &'static [&'static str], cause: Cause, sentence: &'static str) -> Wording {
    let mut pairs = Pairs::NONE;
    let mut at = 0;
    while at < says.len() {
        pairs = pairs.and(says[at]);
        at += 1;
    }
    Wording {
        says,
        place: Place::Start,
        unless: &[],
        cause,
        grade: Grade::Proven,
        sentence,
        unit: Unit::Binary,
        asked: Mark::Nowhere,
        free: Mark::Nowhere,
        total: Mark::Nowhere,
        used: &[],
        pid: Mark::Nowhere,
        further: 0,
        pairs,
    }
}

impl Wording {
    pub(super) const fn likely(mut self) -> Wording {
        self.grade = Grade::Likely;
        self
    }

    pub(super) const fn unknown(mut self) -> Wording {
        self.grade = Grade::Unknown;
        self
    }

    pub(super) const fn anywhere(mut self) -> Wording {
        self.place = Place::Anywhere;
        self
    }

    pub(super) const fn whole(mut self) -> Wording {
        self.place = Place::Whole;
        self
    }

    pub(super) const fn unless(mut self, words: &'static [&'static str]) -> Wording {
        self.unless = words;
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Wording {
        self.unit = unit;
        self
    }

    pub(super) const fn asked(mut self, mark: Mark) -> Wording {
        self.asked = mark;
        self
    }

    pub(super) const fn free(mut self, mark: Mark) -> Wording {
        self.free = mark;
        self
    }

    pub(super) const fn total(mut self, mark: Mark) -> Wording {
        self.total = mark;
        self
    }

    pub(super) const fn used(mut self, marks: &'static [Mark]) -> Wording {
        self.used = marks;
        self
    }

    pub(super) const fn pid(mut self, mark: Mark) -> Wording {
        self.pid = mark;
        self
    }

    pub(super) const fn further(mut self, lines: usize) -> Wording {
        self.further = lines;
        self
    }

    /// Whether a line is this message; `pairs` are those of the line.
    pub(super) fn fits(&self, text: &str, pairs: &Pairs) -> bool {
        let Some((first, others)) = self.says.split_first().filter(|_| pairs.include(&self.pairs)) else {
            return false;
        };
        let found = match self.place {
            Place::Whole => text.trim().trim_end_matches(['.', '!']) == *first,
            Place::Anywhere => text
                .find(first)
                .is_some_and(|at| in_order(&text[at + first.len()..], others)),
            Place::Start => text
                .match_indices(first)
                .any(|(at, _)| is_start(&text[..at]) && in_order(&text[at + first.len()..], others)),
        };
        found && !self.unless.iter().any(|word| text.contains(word))
    }

    /// The figures of a message; `text` is the line with the further ones that belong to it.
    pub(super) fn figures(&self, text: &str) -> Figures {
        let size = |mark: &Mark| match mark {
            Mark::Nowhere => None,
            Mark::After(word) => size_at(&text[text.find(word)? + word.len()..], self.unit),
            Mark::Before(word) => size_before(&text[..text.find(word)?], self.unit),
            Mark::Shape => shape_bytes(text),
        };
        let total = size(&self.total);
        let used = self.used.iter().filter_map(size).reduce(u64::saturating_add);
        Figures {
            asked: size(&self.asked),
            free: size(&self.free).or_else(|| Some(total?.saturating_sub(used?))),
            total,
            used,
            pid: match self.pid {
                Mark::After(word) => text.find(word).and_then(|at| pid_at(&text[at + word.len()..])),
                _ => None,
            },
        }
    }

    pub(super) fn sentence(&self, figures: &Figures) -> String {
        format!("{}{}.", self.sentence, told(figures))
    }
}

/// What the figures add to a sentence.
fn told(figures: &Figures) -> String {
    let bytes = format_bytes;
    match (figures.asked, figures.free, figures.total, figures.used) {
        (Some(asked), Some(free), Some(total), _) => {
            format!(
                ": it asked for {}, and {} of {} was free",
                bytes(asked),
                bytes(free),
                bytes(total)
            )
        }
        (Some(asked), Some(free), None, _) => {
            format!(": it asked for {}, and {} was free", bytes(asked), bytes(free))
        }
        (Some(asked), None, Some(total), _) => {
            format!(
                ": it asked for {}, and there is {} in all",
                bytes(asked),
                bytes(total)
            )
        }
        (Some(asked), None, None, _) => format!(": it asked for {}", bytes(asked)),
        (None, _, Some(total), Some(used)) => format!(": {} of {} was in use", bytes(used), bytes(total)),
        (None, Some(free), Some(total), None) => format!(": {} of {} was free", bytes(free), bytes(total)),
        (None, Some(free), None, _) => format!(": {} was free", bytes(free)),
        (None, None, Some(total), None) => format!(": the limit is {}", bytes(total)),
        (None, None, None, Some(used)) => format!(": {} was in use", bytes(used)),
        (None, None, None, None) => String::new(),
    }
}

pub(super) fn pid_at(text: &str) -> Option<i32> {
    let text = text.trim_start();
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
        .parse()
        .ok()
}

/// Whether what stands before a message is a label of it, not a sentence around it.
pub(super) fn is_start(before: &str) -> bool {
    before.trim_end().chars().next_back().is_none_or(|last| {
        matches!(
            last,
            ':' | ']' | '|' | '>' | ')' | '(' | '-' | '!' | '│' | '"' | '\'' | '`' | '/'
        )
    })
}

fn in_order(mut text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| match text.find(word) {
        Some(at) => {
            text = &text[at + word.len()..];
            true
        }
        None => false,
    })
}
