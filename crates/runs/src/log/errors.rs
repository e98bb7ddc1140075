//! Which lines look like an error.
//!
//! A line that merely has the word in it is none: `0 errors`, `error_rate=0.1`, `training error: 0.25`, an option that is
//! called so. Where the words stand tells most: at the start, or after a label such as a time, a level or a name.

/// Every line that is taken for an error holds one of these, in lower case.
pub(super) const WORDS: &[&str] = &[
    "error",
    "exception",
    "traceback (most recent call",
    "fatal",
    "critical",
    "panic",
    "killed",
    "out of memory",
    "oom",
    "core dumped",
    "segmentation fault",
    "illegal instruction",
    "aborted",
    "terminate called",
    "memory allocation of ",
    "no space left on device",
    "cannot allocate memory",
    "command not found",
    "can't open file",
    "assertion `",
    "double free",
];

/// Whether words found at the start of `text`, by their place in [`WORDS`], may be those of an error. What follows them tells
/// for most that are none, at a hundredth of the cost of [`is_error`]: `error_rate`, `errors`, `error=`.
pub(super) fn may_be_error(text: &[u8], which: usize) -> bool {
    let word = WORDS[which];
    let is_noun = matches!(word, "error" | "exception" | "fatal" | "critical");
    let after = &text[word.len()..];
    !is_noun
        || after.starts_with(b"group")
        || !after
            .first()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'=' | b',' | b'.'))
}

/// Longer ones are data; what matters stands before it.
const LONGEST: usize = 16 * 1024;

/// Whether somebody who looks for what went wrong should see this line.
pub(super) fn is_error(text: &[u8]) -> bool {
    let text = without_escapes(&text[..text.len().min(LONGEST)]);
    let text = String::from_utf8_lossy(&text);
    // What a progress bar overwrote is a line of its own.
    text.split('\r').map(str::trim).any(|part| {
        let lower = part.to_ascii_lowercase();
        let line = Line {
            text: part,
            lower: &lower,
        };
        line.is_traceback()
            || line.names_an_exception()
            || line.has_a_level()
            || line.says_error()
            || line.is_a_last_word()
    })
}

/// Without colours, titles and movements of the cursor.
pub(super) fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            0x1b => match rest.next() {
                Some(b'[') => {
                    rest.by_ref().find(|byte| (0x40..=0x7e).contains(byte));
                }
                Some(b']') => {
                    rest.by_ref().find(|byte| matches!(byte, 0x07 | 0x1b));
                }
                _ => {}
            },
            b'\r' | b'\t' => plain.push(byte),
            0..b' ' => {}
            _ => plain.push(byte),
        }
    }
    plain
}

struct Line<'a> {
    text: &'a str,
    /// The same in lower case, byte by byte.
    lower: &'a str,
}

impl<'a> Line<'a> {
    fn is_traceback(&self) -> bool {
        self.lower.contains("traceback (most recent call")
    }

    /// `ValueError: …`, `torch.OutOfMemoryError: …`, `Exception in thread …`, and `KeyError` alone.
    fn names_an_exception(&self) -> bool {
        if self.text.starts_with("Exception in thread ") {
            return true;
        }
        ["Error", "Exception", "ErrorGroup", "ExceptionGroup"]
            .iter()
            .any(|ending| {
                self.text.match_indices(ending).any(|(at, _)| {
                    let (head, after) = (&self.text[..at], &self.text[at + ending.len()..]);
                    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
                    let before = head.trim_end_matches(is_part);
                    let name = head[before.len()..].rsplit('.').next().unwrap_or_default();
                    // `Error: …` alone is for others to judge, and a warning quotes what it copes with.
                    let is_name = match name.is_empty() {
                        true => *ending != "Error",
                        false => name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'),
                    };
                    let is_said = match after.strip_prefix(':') {
                        Some(message) => is_label(before) && (message.is_empty() || message.starts_with(' ')),
                        None => {
                            after.is_empty() && (before.trim().is_empty() || before.trim_end().ends_with(']'))
                        }
                    };
                    is_name && is_said && !before.contains("Warning")
                })
            })
    }

    /// `ERROR:root:…`, `2026-11-15 20:15:30 [CRITICAL] …`, `level=error msg=…`.
    fn has_a_level(&self) -> bool {
        let set = [
            "level=",
            "level=\"",
            "level\":\"",
            "level\": \"",
            "severity=",
            "severity\":\"",
            "severity\": \"",
        ];
        ["error", "critical", "fatal"].iter().any(|level| {
            self.words(level).any(|(at, after)| {
                let before = &self.text[..at];
                if let Some(head) = set.iter().find_map(|set| self.lower[..at].strip_suffix(set)) {
                    let apart = |last: char| !last.is_ascii_alphanumeric() && !matches!(last, '-' | '_');
                    return head.chars().next_back().is_none_or(apart) && !after.starts_with('|');
                }
                let is_upper = self.text[at..at + level.len()]
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase());
                let ends =
                    after.is_empty() || after.starts_with([':', ' ', ']', ')', '|', '>', '\t', '-', '!']);
                is_upper && ends && is_level_after(before) && !is_figure(after)
            })
        })
    }

    /// `error: …`, `train.py: error: …`, `fatal error: …`, `error[E0382]: …`, `Fatal Python error: …`.
    fn says_error(&self) -> bool {
        if self.text.starts_with("fatal: ") {
            return true;
        }
        self.words("error").any(|(at, after)| {
            let before = &self.lower[..at];
            let none = before.trim_end().rsplit(' ').next().unwrap_or_default();
            let is_said = after.starts_with("[E") && after.contains("]: ") || after.starts_with(':');
            is_said
                && !after.starts_with("::")
                && !matches!(none, "no" | "0" | "zero" | "without")
                && !is_figure(after)
                && !after.contains("Detected 0 oom")
        })
    }

    /// What is said where there is nothing more to say: by the kernel, a shell, a runtime.
    fn is_a_last_word(&self) -> bool {
        let lower = self.lower.trim_end_matches(['.', '!', '"', '\'', '`']);
        let of_a_shell = lower.contains(": line ");
        let has = |words: &str| self.lower.contains(words);
        let whole = |words: &str| lower == words;
        // `Segmentation fault (core dumped)`, and not `Segmentation fault tests passed`.
        let is_end = |words: &str| {
            self.lower.match_indices(words).any(|(at, _)| {
                let after = &self.lower[at + words.len()..];
                let (before, after) = (
                    &self.lower[..at],
                    after.trim_start_matches([' ', '\t']).chars().next(),
                );
                let stands_alone = is_label(before) || of_a_shell;
                stands_alone && (of_a_shell || matches!(after, None | Some('(' | '.' | ':' | '!')))
            })
        };
        let out_of_memory = || {
            self.lower.match_indices("out of memory").any(|(at, words)| {
                let before = self.lower[..at].trim_end();
                let of_whom = ["cuda", "hip", "gpu", "device"]
                    .iter()
                    .find_map(|name| before.strip_suffix(name));
                let before = of_whom.unwrap_or(before);
                let after = self.lower[at + words.len()..].chars().next();
                is_label(before) && matches!(after, None | Some('.' | ':' | '!' | ';'))
            })
        };
        let killed = || {
            whole("killed")
                || has("killed process ")
                || has("killed by signal:")
                || self.text.contains("killed by SIG")
                || (of_a_shell && has(" killed"))
        };
        let oom = || {
            has("invoked oom-killer")
                || has("oom-kill:constraint")
                || has("oom when allocating ")
                || whole("oomkilled")
                || has("reason: oomkilled")
                || (has("oom_kill event") && !has("detected 0 "))
        };
        has("(core dumped)")
            || has("panicked at ")
            || self.text.starts_with("panic: ")
            || has("terminate called")
            || is_end("segmentation fault")
            || is_end("bus error")
            || is_end("illegal instruction")
            || is_end("floating point exception")
            || is_end("aborted") && (whole("aborted") || of_a_shell)
            || killed()
            || oom()
            || out_of_memory()
            || (has("memory allocation of ") && has(" bytes failed"))
            || (has("assertion `") && has("failed"))
            || self.lower.starts_with("double free or corruption")
            || has(": can't open file ")
            || ([
                "no space left on device",
                "cannot allocate memory",
                "command not found",
            ]
            .iter()
            .any(|words| lower.ends_with(&format!(": {words}")) || lower.ends_with(&format!("] {words}")))
                && !has("continuing anyway"))
    }

    /// Where a word stands by itself, with what follows it.
    fn words<'b>(&'b self, word: &'b str) -> impl Iterator<Item = (usize, &'a str)> + 'b {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.lower.match_indices(word).filter_map(move |(at, _)| {
            let after = &self.text[at + word.len()..];
            let apart = !self.text[..at].ends_with(is_part) && !after.starts_with(is_part);
            apart.then_some((at, after))
        })
    }
}

/// Whether what stands before a message is a label of it, not a sentence around it.
fn is_label(before: &str) -> bool {
    let last = before.trim_end().chars().next_back();
    last.is_none_or(|last| {
        matches!(last, ':' | ']' | '|' | '>' | ')' | '(' | '-' | '!' | '│' | '*') || last.is_ascii_digit()
    })
}

/// Whether a level may stand here: after a time, a name, brackets; and not after another level, nor in a sentence.
fn is_level_after(before: &str) -> bool {
    let said = before.trim_end();
    let last_word = said.rsplit(' ').next().unwrap_or_default();
    let known = ["DEBUG", "INFO", "TRACE", "NOTICE"]
        .iter()
        .any(|level| said.contains(level));
    if known || matches!(last_word.to_ascii_lowercase().as_str(), "0" | "no" | "zero") {
        return false;
    }
    let of_a_time =
        said.starts_with(|c: char| c.is_ascii_digit() || c == '[') && said.split_whitespace().count() <= 3;
    is_label(said) || said.ends_with(['[', '(', '<']) || of_a_time
}

/// `: 0.25`, `=0`, ` 12%`: a figure that is called an error, not a message.
fn is_figure(after: &str) -> bool {
    let text = after.trim_start_matches([':', '=', ' ', '\t']);
    let token = text
        .split([' ', ',', ';', ')', '|', '\t'])
        .next()
        .unwrap_or_default();
    if text.len() == after.len() || token.is_empty() {
        return false;
    }
    if ["tensor(", "array(", "[0", "[-", "[1", "[ "]
        .iter()
        .any(|start| text.starts_with(start))
    {
        return true;
    }
    let number = token.trim_end_matches(['%', '.']);
    let Ok(value) = number.parse::<f64>() else {
        return false;
    };
    let rest = &text[token.len()..];
    value == 0.0
        || !value.is_finite()
        || number.contains(['.', 'e'])
        || token.ends_with('%')
        || !rest.contains(char::is_alphabetic)
}
