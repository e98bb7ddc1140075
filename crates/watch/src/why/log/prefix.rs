//! What stands before each line of a traceback: the name of who speaks, a time stamp, the gutter of a group.

use super::lines::Line;

#[derive(Debug, Clone)]
pub(super) struct Prefix {
    kind: Kind,
    /// Lines of an exception group have `| ` before them.
    group: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Nothing, or something on the first line only: a progress bar, a logger's label.
    None,
    /// The same on each line: `[rank0]: `, `(pid=77) `, spaces. A line without it is somebody else's.
    Exact(String),
    /// The same but for its digits: a time stamp.
    Shape(String),
}

impl Prefix {
    pub(super) fn none() -> Prefix {
        Prefix {
            kind: Kind::None,
            group: false,
        }
    }

    /// From what stands before the header, and what the lines after it begin with.
    pub(super) fn of(lines: &[Line<'_>], at: usize, before: &str) -> Prefix {
        let before = before.strip_suffix("Original ").unwrap_or(before);
        let before = before.strip_suffix("Exception Group ").unwrap_or(before);
        let group = before.trim_end().ends_with(['+', '|']);
        let before = match group {
            true => before.trim_end_matches([' ', '+', '|']),
            false => before,
        };
        let candidates = [Kind::Exact(before.into()), Kind::Shape(before.into()), Kind::None];
        let near = lines
            .iter()
            .skip(at + 1)
            .filter(|line| line.stream == lines[at].stream)
            .take(8);
        let fits = |kind: &Kind| {
            let prefix = Prefix {
                kind: kind.clone(),
                group,
            };
            near.clone().any(|line| {
                prefix
                    .strip(&line.text)
                    .is_some_and(|rest| rest.trim_start().starts_with("File \""))
            })
        };
        let kind = match before.is_empty() {
            true => Kind::None,
            false => candidates.into_iter().find(fits).unwrap_or(Kind::None),
        };
        Prefix { kind, group }
    }

    /// The line without it; `None` where the line is not of this speaker.
    pub(super) fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        let rest = match &self.kind {
            Kind::None => text,
            Kind::Exact(prefix) => match text.strip_prefix(prefix.as_str()) {
                Some(rest) => rest,
                // A blank line has lost its last space on the way.
                None if text.trim_end() == prefix.trim_end() => "",
                None => return None,
            },
            Kind::Shape(prefix) => {
                let mut rest = text.chars();
                let same = prefix.chars().all(|expected| {
                    rest.next()
                        .is_some_and(|c| c == expected || (c.is_ascii_digit() && expected.is_ascii_digit()))
                });
                if !same {
                    return None;
                }
                rest.as_str()
            }
        };
        Some(if self.group { without_gutter(rest) } else { rest })
    }

    pub(super) fn is_group(&self) -> bool {
        self.group
    }

    /// Each line says whose it is.
    pub(super) fn names_speaker(&self) -> bool {
        matches!(&self.kind, Kind::Exact(prefix) if !prefix.trim().is_empty())
    }

    /// `rank 0` of `[rank0]: `, `train pid=77` of `(train pid=77) `.
    pub(super) fn speaker(&self) -> Option<String> {
        let Kind::Exact(prefix) = &self.kind else {
            return None;
        };
        let name = prefix.trim().trim_end_matches(':');
        if let Some(rank) = name.strip_prefix("[rank").and_then(|rank| rank.strip_suffix(']')) {
            return Some(format!("rank {rank}"));
        }
        let inner = name.strip_prefix('(')?.strip_suffix(')')?;
        inner.contains("pid=").then(|| inner.into())
    }
}

fn without_gutter(text: &str) -> &str {
    let run = text.len() - text.trim_start_matches([' ', '|', '+', '-']).len();
    match text[..run].rfind('|') {
        Some(bar) => {
            let rest = &text[bar + 1..];
            rest.strip_prefix(' ').unwrap_or(rest)
        }
        None => text,
    }
}
