//! What a person would have read of a line that was written to a terminal.

/// The line without colours, titles and movements of the cursor.
fn plain(line: &[u8]) -> Vec<u8> {
    without(line, |_| false)
}

/// The same with its colours and whatever else dresses its letters (`ESC [ … m`): they are shown with the log.
pub(crate) fn dressed(line: &[u8]) -> Vec<u8> {
    without(line, |sequence| {
        let inside = sequence
            .strip_prefix(b"\x1b[")
            .and_then(|rest| rest.strip_suffix(b"m"));
        inside.is_some_and(|inside| {
            inside
                .iter()
                .all(|byte| byte.is_ascii_digit() || b";:".contains(byte))
        })
    })
}

/// The line without the sequences that are not to be kept.
fn without(line: &[u8], is_kept: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(line.len());
    // What stands before it is no letter that could be taken back.
    let mut fixed = 0;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            0x1b => {
                let behind = after_escape(after);
                let sequence = &rest[..rest.len() - behind.len()];
                if is_kept(sequence) {
                    text.extend_from_slice(sequence);
                    fixed = text.len();
                }
                behind
            }
            0x08 => {
                text.truncate(text.len().saturating_sub(1).max(fixed));
                after
            }
            0x07 => after,
            _ => {
                text.push(byte);
                after
            }
        };
    }
    text
}

/// What follows an escape sequence whose first byte, the escape itself, has been read.
fn after_escape(bytes: &[u8]) -> &[u8] {
    let Some((&kind, rest)) = bytes.split_first() else {
        return bytes;
    };
    let behind = |end: Option<usize>| end.map_or(&[][..], |end| &rest[end + 1..]);
    match kind {
        // Parameters, then a letter or the like.
        b'[' => behind(rest.iter().position(|byte| (0x40..=0x7e).contains(byte))),
        // A text up to a bell, or up to an escape with a backslash.
        b']' | b'P' | b'_' | b'^' => {
            let end = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b));
            match end.map(|end| (rest[end], &rest[end + 1..])) {
                Some((0x1b, after)) => after.strip_prefix(b"\\").unwrap_or(after),
                Some((_, after)) => after,
                None => &[],
            }
        }
        // A character set, named by one more byte.
        b'(' | b')' => rest.get(1..).unwrap_or_default(),
        _ => rest,
    }
}

/// One line of somebody else's text that does nothing to a terminal but stand there: what a person would have read of it,
/// without control characters and what turns the direction of writing, at most so many characters.
pub fn readable(text: &str, most: usize) -> String {
    // A progress bar writes over itself.
    let last = text
        .rsplit('\r')
        .find(|part| !part.trim().is_empty())
        .unwrap_or_default();
    let bytes = plain(last.as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    let mut line: String = text
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .filter(|c| *c == '\t' || !(c.is_control() || turns(*c)))
        .take(most + 1)
        .collect();
    if let Some((end, _)) = line.char_indices().nth(most) {
        let cut = line[..end].char_indices().next_back().map_or(0, |(last, _)| last);
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// The marks of Unicode that make a terminal show text in another order than it is written.
fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_do_nothing_to_a_terminal() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07x", "red x"),
            ("10%\r20%\r", "20%"),
            ("a\nb\0c\u{9b}31m\u{202e}d\tf\x7f", "a bc31md\tf"),
            ("ä\x08b", "\u{fffd}b"),
            ("\r", ""),
            ("", ""),
            ("0123456789ab", "012345678…"),
            ("0123456789", "0123456789"),
            ("ääääääääääääää", "äääääääää…"),
        ] {
            assert_eq!(readable(text, 10), expected, "{text:?}");
        }
    }

    #[test]
    fn colours_may_stay() {
        for (line, expected) in [
            ("\x1b[31;1mred\x1b[0m", "\x1b[31;1mred\x1b[0m"),
            ("\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m"),
            ("\x1b]0;title\x07\x1b[2Kx\x1b[?25l\x1b[>4;1my", "xy"),
            ("a\x1b[1m\x08\x08b", "a\x1b[1mb"),
            ("cut \x1b[3", "cut "),
        ] {
            let dressed = dressed(line.as_bytes());
            assert_eq!(String::from_utf8_lossy(&dressed), expected, "{line:?}");
        }
    }

    #[test]
    fn only_the_text_is_left() {
        for (line, expected) in [
            ("plain", "plain"),
            ("\x1b[31;1mred\x1b[0m", "red"),
            ("\x1b]0;title\x07epoch 1", "epoch 1"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b[?25l\x1b[2K 45%|████▌     |", " 45%|████▌     |"),
            ("ab\x08c\x07", "ac"),
            ("\x1b(Bx\x1b=y", "xy"),
            ("cut \x1b[3", "cut "),
            ("cut \x1b", "cut "),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&plain(line.as_bytes())),
                expected,
                "{line:?}"
            );
        }
    }
}
