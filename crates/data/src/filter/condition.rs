//! A condition on the values of a row, with the three answers of SQL: true, false, and unknown for missing values.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::parse::parse;
use crate::chunk::{Chunk, Read, Wanted, parse_boolean};
use crate::encode::TimeFormat;
use crate::{Error, Number, Result, parse_number};

/// A condition such as `age >= 18 and city in ('Oslo', 'Rome')`.
///
/// Comparisons `= == != <> < <= > >=` of a column with a number, a text, `true` or `false`; `in`, `between`, `like`
/// with `%` and `_`, `is null`; `and`, `or`, `not` and parentheses. A missing value is neither equal nor unequal to
/// anything: only `is null` holds for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    pub(super) text: String,
    pub(super) columns: Vec<String>,
    pub(super) node: Node,
    /// How each column is read, where a table has settled it; see [`Condition::bound`].
    pub(super) reads: Vec<Option<Read>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    /// A column, by its place among those of the condition, and what is asked of it.
    Test(usize, Test),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Compare(Compare, Literal),
    In(Vec<Literal>),
    Like(String),
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Number(f64),
    Text(String),
    Truth(bool),
    /// Seconds since 1970, beside a column of times; a text of that column is read in this format.
    Time(f64, TimeFormat),
}

impl Compare {
    /// The same with its sides exchanged.
    pub(super) fn turned(self) -> Compare {
        match self {
            Compare::Below => Compare::Above,
            Compare::AtMost => Compare::AtLeast,
            Compare::Above => Compare::Below,
            Compare::AtLeast => Compare::AtMost,
            same => same,
        }
    }

    #[inline]
    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Equal => order.is_eq(),
            Compare::Unequal => order.is_ne(),
            Compare::Below => order.is_lt(),
            Compare::AtMost => order.is_le(),
            Compare::Above => order.is_gt(),
            Compare::AtLeast => order.is_ge(),
        }
    }
}

impl Condition {
    pub fn new(text: &str) -> Result<Condition> {
        let (columns, node) = parse(text)?;
        Ok(Condition {
            text: text.into(),
            reads: vec![None; columns.len()],
            columns,
            node,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns that it needs, read as what they are compared with: as text where that differs, for a text can
    /// still be read as a number. A column that is read otherwise, for others need it so, serves as well.
    pub fn columns(&self) -> Vec<Wanted> {
        let mut reads = vec![None; self.columns.len()];
        self.node.reads(&mut reads);
        let reads = self
            .reads
            .iter()
            .zip(reads)
            .map(|(settled, read)| settled.or(read));
        let wanted = |(name, read): (&String, Option<Read>)| Wanted {
            name: name.clone(),
            read: read.unwrap_or(Read::Text),
        };
        self.columns.iter().zip(reads).map(wanted).collect()
    }

    /// Calls `take` with each row for which the condition is true, in order.
    pub fn select(&self, chunk: &Chunk, mut take: impl FnMut(usize)) {
        let place = |name: &String| chunk.columns.iter().position(|column| column.name == *name);
        let places: Vec<Option<usize>> = self.columns.iter().map(place).collect();
        for start in (0..chunk.n_rows()).step_by(STRIP) {
            let n = STRIP.min(chunk.n_rows() - start);
            let mut answers = [FALSE; STRIP];
            let rows = Rows {
                chunk,
                places: &places,
                start,
            };
            self.node.answer(&rows, &mut answers[..n]);
            for (row, answer) in answers[..n].iter().enumerate() {
                if *answer == TRUE {
                    take(start + row);
                }
            }
        }
    }
}

impl TryFrom<String> for Condition {
    type Error = Error;

    fn try_from(text: String) -> Result<Condition> {
        Condition::new(&text)
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> String {
        condition.text
    }
}

/// Rows are answered in strips, so that answers under way stay on the stack, whatever the chunk.
const STRIP: usize = 256;

/// Answers, in such an order that `and` is the least of them, `or` the greatest and `not` turns them around.
const FALSE: u8 = 0;
const UNKNOWN: u8 = 1;
const TRUE: u8 = 2;

fn answer(holds: bool) -> u8 {
    if holds { TRUE } else { FALSE }
}

struct Rows<'r> {
    chunk: &'r Chunk,
    places: &'r [Option<usize>],
    start: usize,
}

impl Node {
    fn answer(&self, rows: &Rows, answers: &mut [u8]) {
        match self {
            Node::Test(column, test) => match rows.places[*column] {
                Some(place) => test.answer(rows, place, answers),
                // A column that is not there is missing in every row.
                None => answers.fill(test.of_text(None)),
            },
            Node::Not(node) => {
                node.answer(rows, answers);
                answers.iter_mut().for_each(|answer| *answer = TRUE - *answer);
            }
            Node::All(nodes) => fold(nodes, rows, answers, u8::min),
            Node::Any(nodes) => fold(nodes, rows, answers, u8::max),
        }
    }

    /// Notes as what each column is compared.
    fn reads(&self, reads: &mut [Option<Read>]) {
        match self {
            Node::Not(node) => node.reads(reads),
            Node::All(nodes) | Node::Any(nodes) => nodes.iter().for_each(|node| node.reads(reads)),
            Node::Test(column, test) => {
                let mut note = |read: Read| {
                    let known = &mut reads[*column];
                    *known = Some(if known.is_none_or(|known| known == read) {
                        read
                    } else {
                        Read::Text
                    });
                };
                match test {
                    Test::Compare(_, literal) => note(literal.read()),
                    Test::In(literals) => literals.iter().for_each(|literal| note(literal.read())),
                    Test::Like(_) => note(Read::Text),
                    Test::Null => {}
                }
            }
        }
    }
}

fn fold(nodes: &[Node], rows: &Rows, answers: &mut [u8], join: fn(u8, u8) -> u8) {
    let Some((first, others)) = nodes.split_first() else {
        return;
    };
    first.answer(rows, answers);
    for node in others {
        let mut more = [FALSE; STRIP];
        let more = &mut more[..answers.len()];
        node.answer(rows, more);
        for (answer, more) in answers.iter_mut().zip(more) {
            *answer = join(*answer, *more);
        }
    }
}

impl Test {
    fn answer(&self, rows: &Rows, place: usize, answers: &mut [u8]) {
        match rows.chunk.columns[place].read {
            Read::Text => {
                for (i, answer) in answers.iter_mut().enumerate() {
                    *answer = self.of_text(rows.chunk.text(place, rows.start + i));
                }
            }
            Read::Number | Read::Boolean | Read::Time(_) => {
                let numbers = &rows.chunk.numbers(place)[rows.start..][..answers.len()];
                for (number, answer) in numbers.iter().zip(answers) {
                    *answer = self.of_number(*number);
                }
            }
        }
    }

    fn of_text(&self, text: Option<&[u8]>) -> u8 {
        let Some(text) = text else {
            return if *self == Test::Null { TRUE } else { UNKNOWN };
        };
        match self {
            Test::Null => FALSE,
            Test::Like(pattern) => answer(is_like(text, pattern.as_bytes())),
            Test::Compare(compare, literal) => literal.of_text(text, *compare),
            Test::In(literals) => {
                let equal = literals
                    .iter()
                    .map(|literal| literal.of_text(text, Compare::Equal));
                equal.max().unwrap_or(FALSE)
            }
        }
    }

    fn of_number(&self, number: f64) -> u8 {
        if number.is_nan() {
            return if *self == Test::Null { TRUE } else { UNKNOWN };
        }
        match self {
            Test::Null => FALSE,
            Test::Like(pattern) => answer(is_like(number.to_string().as_bytes(), pattern.as_bytes())),
            Test::Compare(compare, literal) => literal.of_number(number, *compare),
            Test::In(literals) => {
                let equal = literals
                    .iter()
                    .map(|literal| literal.of_number(number, Compare::Equal));
                equal.max().unwrap_or(FALSE)
            }
        }
    }
}

impl Literal {
    fn read(&self) -> Read {
        match self {
            Literal::Number(_) => Read::Number,
            Literal::Text(_) => Read::Text,
            Literal::Truth(_) => Read::Boolean,
            Literal::Time(_, format) => Read::Time(*format),
        }
    }

    /// What is neither equal nor in any order: a word beside a number, or beside a truth.
    fn of_other(compare: Compare) -> u8 {
        match compare {
            Compare::Equal => FALSE,
            Compare::Unequal => TRUE,
            _ => UNKNOWN,
        }
    }

    fn of_text(&self, text: &[u8], compare: Compare) -> u8 {
        match self {
            Literal::Text(literal) => answer(compare.holds(text.cmp(literal.as_bytes()))),
            Literal::Number(_) => match parse_number(text) {
                Number::Value(number) => self.of_number(number, compare),
                _ => Literal::of_other(compare),
            },
            Literal::Truth(literal) => match parse_boolean(text) {
                Some(truth) => answer(compare.holds(truth.cmp(literal))),
                None => Literal::of_other(compare),
            },
            // A source may write its times as dates or as seconds.
            Literal::Time(_, format) => match (format.parse(text), parse_number(text)) {
                (Some(seconds), _) | (None, Number::Value(seconds)) => self.of_number(seconds, compare),
                _ => Literal::of_other(compare),
            },
        }
    }

    #[inline]
    fn of_number(&self, number: f64, compare: Compare) -> u8 {
        let literal = match self {
            Literal::Number(literal) | Literal::Time(literal, _) => *literal,
            Literal::Truth(literal) => f64::from(u8::from(*literal)),
            Literal::Text(text) => match parse_number(text.as_bytes()) {
                Number::Value(literal) => literal,
                _ => return Literal::of_other(compare),
            },
        };
        // Neither side is NaN, and 0 and -0 are equal.
        answer(compare.holds(number.partial_cmp(&literal).unwrap_or(Ordering::Equal)))
    }
}

/// Whether a text is like a pattern in which `%` stands for any letters and `_` for one.
pub(super) fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut t, mut p) = (0, 0);
    // Behind the last `%` and where it was last tried.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(b'_') => {
                t += letter_bytes(text, t);
                p += 1;
            }
            Some(byte) if *byte == text[t] => {
                t += 1;
                p += 1;
            }
            _ => match star {
                Some((behind, tried)) => {
                    let tried = tried + letter_bytes(text, tried);
                    (t, p, star) = (tried, behind, Some((behind, tried)));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'%')
}

/// Bytes of the letter that starts here.
fn letter_bytes(text: &[u8], at: usize) -> usize {
    let following = text[at + 1..].iter().take_while(|byte| **byte & 0xc0 == 0x80);
    1 + following.count()
}
