//! A line of a log as a terminal would dress it: what it says, in pieces of one style each.
//!
//! Only what dresses text is kept (SGR, `ESC [ … m`), as classes that `log.css` knows; every other sequence is dropped with
//! what belongs to it, and control characters become the pictures that Unicode has for them. A style ends with its line: a
//! window into a log of gigabytes does not know what stood before it.

/// A piece of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

/// How a piece is dressed. Colours are numbers of the palette of 256.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub foreground: Option<u8>,
    pub background: Option<u8>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
    pub struck: bool,
}

const ESCAPE: char = '\u{1b}';
/// Parameters of a sequence beyond these mean nothing.
const MOST_PARAMETERS: usize = 32;

impl Style {
    /// The classes that say so, in their order; empty where nothing is said.
    ///
    /// A colour alone is shown as one that can be read on the page (`f9`); beside a background of its own it is shown as it
    /// is (`x9`), for who chose both knew what they look like together.
    pub fn classes(self) -> String {
        let (mut front, mut back) = (self.foreground.map(Ink::Of), self.background.map(Ink::Of));
        if self.inverse {
            (front, back) = (Some(back.unwrap_or(Ink::Page)), Some(front.unwrap_or(Ink::Text)));
        }
        let mut classes = Vec::new();
        match (front, back) {
            (Some(Ink::Of(colour)), None) => classes.push(format!("f{colour}")),
            (Some(Ink::Of(colour)), Some(_)) => classes.push(format!("x{colour}")),
            (Some(Ink::Page), _) => classes.push("xp".into()),
            (Some(Ink::Text) | None, _) => {}
        }
        match back {
            Some(Ink::Of(colour)) => classes.push(format!("b{colour}")),
            Some(Ink::Text | Ink::Page) => classes.push("bt".into()),
            None => {}
        }
        let words = [
            (self.bold, "bold"),
            (self.dim && front.is_none(), "dim"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (self.struck, "struck"),
        ];
        let said = words.iter().filter(|(is_so, _)| *is_so);
        classes.extend(said.map(|(_, word)| word.to_string()));
        classes.join(" ")
    }
}

/// What a colour is, once front and back may have changed places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    Of(u8),
    /// That of plain text, and that of the paper.
    Text,
    Page,
}

/// The pieces of a line.
pub fn spans(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut style, mut text) = (Style::default(), String::new());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        match first {
            ESCAPE | '\u{80}'..='\u{9f}' => {
                let (sequence, behind) = sequence(first, after);
                rest = behind;
                let Some(parameters) = sequence else { continue };
                let mut dressed = style;
                dressed.apply(parameters);
                if dressed != style {
                    push(&mut spans, &mut text, style);
                    style = dressed;
                }
            }
            '\t' => {
                text.push('\t');
                rest = after;
            }
            '\0'..='\u{1f}' => {
                text.push(char::from_u32(0x2400 + u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER));
                rest = after;
            }
            '\u{7f}' => {
                text.push('\u{2421}');
                rest = after;
            }
            // What is plain is taken at once.
            _ => {
                let is_plain = |c: char| c >= ' ' && !('\u{7f}'..='\u{9f}').contains(&c);
                let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
                text.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    push(&mut spans, &mut text, style);
    spans
}

/// What a line says, whatever it is dressed in.
pub fn plain(line: &str) -> String {
    spans(line).into_iter().map(|span| span.text).collect()
}

fn push(spans: &mut Vec<Span>, text: &mut String, style: Style) {
    if !text.is_empty() {
        spans.push(Span {
            text: std::mem::take(text),
            style,
        });
    }
}

/// The parameters of a sequence that dresses text, and what stands behind it; of others only the latter.
fn sequence(introducer: char, after: &str) -> (Option<&str>, &str) {
    // ESC and a letter is an old way to write one of the characters from 80 to 9f.
    let (kind, body) = match (introducer, after.chars().next()) {
        (ESCAPE, Some(letter @ '@'..='_')) => (letter, &after[1..]),
        // Of two or three characters, such as those that choose a set of letters.
        (ESCAPE, Some(' '..='/')) => {
            let middle = after.trim_start_matches(|c| (' '..='/').contains(&c));
            let behind = middle.strip_prefix(|c| ('0'..='~').contains(&c));
            return (None, behind.unwrap_or(middle));
        }
        (ESCAPE, Some(letter @ ('0'..='?' | '`'..='~'))) => return (None, &after[letter.len_utf8()..]),
        (ESCAPE, _) => return (None, after),
        (control, _) => (char::from_u32(u32::from(control) - 0x40).unwrap_or(' '), after),
    };
    match kind {
        '[' => {
            let end = body.find(|c: char| !(' '..='?').contains(&c));
            let Some(end) = end else { return (None, "") };
            let behind = &body[end..];
            match behind.chars().next() {
                Some('m') => (Some(&body[..end]), &behind[1..]),
                Some('@'..='~') => (None, &behind[1..]),
                // Not the end of any sequence: what came is dropped, what comes is text.
                _ => (None, behind),
            }
        }
        // Titles, links and the like: up to BEL, or the end of a string. Where it does not end, only its mark goes, so that
        // nothing is hidden.
        ']' | 'P' | 'X' | '^' | '_' => {
            let bell = body.find('\u{7}').map(|at| (at, 1));
            let ends = ["\u{1b}\\", "\u{9c}"].map(|end| body.find(end).map(|at| (at, end.len())));
            let first = bell.into_iter().chain(ends.into_iter().flatten()).min();
            (None, first.map_or(body, |(at, length)| &body[at + length..]))
        }
        _ => (None, body),
    }
}

impl Style {
    /// Does what the parameters of a sequence say: `1;38;5;208`, or `38:2::255:128:0`.
    fn apply(&mut self, parameters: &str) {
        // `>4;1m` and the like are about keyboards.
        if parameters.contains(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':')) {
            return;
        }
        let mut fields = parameters.split(';').take(MOST_PARAMETERS);
        while let Some(field) = fields.next() {
            let mut parts = field.split(':').map(number);
            let code = parts.next().flatten().unwrap_or(0);
            match code {
                38 | 48 | 58 => {
                    let colour = match field.contains(':') {
                        true => colour_of_parts(&parts.collect::<Vec<_>>()),
                        false => colour_of_fields(&mut fields),
                    };
                    match code {
                        38 => self.foreground = colour.or(self.foreground),
                        48 => self.background = colour.or(self.background),
                        // Of the line below the text.
                        _ => {}
                    }
                }
                4 => self.underline = parts.next().flatten() != Some(0),
                code => self.set(code),
            }
        }
    }

    fn set(&mut self, code: u32) {
        match code {
            0 => *self = Style::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            3 => self.italic = true,
            7 => self.inverse = true,
            9 => self.struck = true,
            21 => self.underline = true,
            22 => (self.bold, self.dim) = (false, false),
            23 => self.italic = false,
            24 => self.underline = false,
            27 => self.inverse = false,
            29 => self.struck = false,
            30..=37 => self.foreground = Some((code - 30) as u8),
            39 => self.foreground = None,
            40..=47 => self.background = Some((code - 40) as u8),
            49 => self.background = None,
            90..=97 => self.foreground = Some((code - 90 + 8) as u8),
            100..=107 => self.background = Some((code - 100 + 8) as u8),
            _ => {}
        }
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// `5;208`, `2;255;128;0`: takes the fields that belong to the colour.
fn colour_of_fields<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<u8> {
    let mut next = || fields.next().map(|field| number(field).unwrap_or(0));
    match next()? {
        5 => u8::try_from(next()?).ok(),
        2 => Some(nearest([next()?, next()?, next()?])),
        _ => None,
    }
}

/// `5:208`, `2:255:128:0`, `2:SPACE:255:128:0`.
fn colour_of_parts(parts: &[Option<u32>]) -> Option<u8> {
    match parts {
        [Some(5), Some(index), ..] => u8::try_from(*index).ok(),
        [Some(2), _, Some(red), Some(green), Some(blue), ..]
        | [Some(2), Some(red), Some(green), Some(blue)] => Some(nearest([*red, *green, *blue])),
        _ => None,
    }
}

/// Levels of the cube of colours, as terminals have them.
const LEVELS: [u32; 6] = [0, 95, 135, 175, 215, 255];

/// The colour of the palette that is nearest to one of 24 bits: of the cube, or one of the greys.
fn nearest(colour: [u32; 3]) -> u8 {
    let colour = colour.map(|part| part.min(255));
    let distance = |other: [u32; 3]| -> u32 {
        let parts = colour.iter().zip(other);
        parts.map(|(a, b)| a.abs_diff(b).pow(2)).sum()
    };
    let step = |part: u32| (0..6).min_by_key(|at| LEVELS[*at].abs_diff(part)).unwrap_or(0);
    let cube = colour.map(step);
    let in_cube = distance(cube.map(|at| LEVELS[at]));
    let grey = (0..24u32)
        .min_by_key(|at| distance([8 + 10 * at; 3]))
        .unwrap_or(0);
    match distance([8 + 10 * grey; 3]) < in_cube {
        true => 232 + grey as u8,
        false => (16 + 36 * cube[0] + 6 * cube[1] + cube[2]) as u8,
    }
}
