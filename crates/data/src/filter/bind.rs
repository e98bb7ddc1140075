//! Fitting a condition to a table: a text that is compared with a column of truths or times is read as one.
//!
//! Every pass over the table then reads the columns of the condition alike, whatever else it needs them for, and
//! selects the same rows.

use super::Condition;
use super::condition::{Literal, Node, Test};
use crate::chunk::{Read, parse_boolean};
use crate::encode::{TimeFormat, parse_time};
use crate::source::Kind;
use crate::{Error, Result};

/// What a table knows of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// What the source declares.
    pub kind: Kind,
    /// How its values are best read; the target is read as its task asks for.
    pub read: Option<Read>,
    /// It feeds the model, and so is read in no other way.
    pub used: bool,
}

impl Condition {
    /// The same condition for a table whose columns hold what `held` says. A value that none of a column's values
    /// can be compared with is refused: it would leave out all rows or none.
    pub(crate) fn bound(&self, held: impl Fn(&str) -> Held) -> Result<Condition> {
        let mut bound = self.clone();
        let mut meanings = Vec::with_capacity(self.columns.len());
        for (at, name) in self.columns.iter().enumerate() {
            let (read, meaning) = held(name).settle(self.node.asks_for_letters(at));
            bound.reads[at] = read;
            meanings.push(meaning);
        }
        bound.node.bind(&|at, test| {
            let (holds, such_as) = meanings[at].told();
            meanings[at].bind(test).map_err(|compared_with| Error::OtherKind {
                column: self.columns[at].clone(),
                compared_with,
                holds,
                such_as,
            })
        })?;
        Ok(bound)
    }
}

/// What values beside a column are to be read as.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// As they were written.
    Plain,
    /// As truths; `letters` says that the column can be asked for its letters all the same.
    Truth {
        letters: bool,
    },
    Time(TimeFormat),
}

impl Held {
    /// How the column is read, and what values beside it mean; `letters` says that it is asked for its letters.
    fn settle(self, letters: bool) -> (Option<Read>, Meaning) {
        let read = match (self.kind, self.read) {
            (Kind::Time, Some(Read::Time(format))) => Read::Time(format),
            (Kind::Time, _) => Read::Time(TimeFormat::YearFirst),
            (Kind::Boolean, _) => Read::Boolean,
            (_, read) => read.unwrap_or(Read::Text),
        };
        // A column for which no letters are kept, only the seconds, has none to ask for.
        if !self.used && letters && self.kind != Kind::Time {
            return (None, Meaning::Plain);
        }
        let meaning = match read {
            Read::Boolean => Meaning::Truth {
                letters: self.read == Some(Read::Text),
            },
            Read::Time(format) => Meaning::Time(format),
            Read::Number | Read::Text => Meaning::Plain,
        };
        let settled = match (self.used, meaning) {
            (true, _) => self.read,
            (false, Meaning::Plain) => None,
            (false, _) => Some(read),
        };
        (settled, meaning)
    }
}

impl Meaning {
    /// Reads the values of a test; the one that cannot be read is told.
    fn bind(self, test: &mut Test) -> Result<(), String> {
        match test {
            Test::Null => Ok(()),
            Test::Compare(_, literal) => self.bind_literal(literal),
            Test::In(literals) => literals
                .iter_mut()
                .try_for_each(|literal| self.bind_literal(literal)),
            Test::Like(pattern) => match self {
                Meaning::Plain | Meaning::Truth { letters: true } => Ok(()),
                Meaning::Truth { letters: false } | Meaning::Time(_) => Err(format!("like '{pattern}'")),
            },
        }
    }

    fn bind_literal(self, literal: &mut Literal) -> Result<(), String> {
        let read = match (self, &*literal) {
            (Meaning::Plain, _) | (_, Literal::Time(..)) => return Ok(()),
            (Meaning::Truth { .. }, Literal::Number(_) | Literal::Truth(_)) => return Ok(()),
            (Meaning::Truth { .. }, Literal::Text(text)) => {
                parse_boolean(text.as_bytes()).map(Literal::Truth)
            }
            (Meaning::Time(format), Literal::Text(text)) => {
                let text = text.as_bytes();
                let seconds = format.parse(text).or_else(|| parse_time(text));
                seconds.map(|seconds| Literal::Time(seconds, format))
            }
            // A year as a number would be taken for seconds.
            (Meaning::Time(_), Literal::Number(_) | Literal::Truth(_)) => None,
        };
        *literal = read.ok_or_else(|| match literal {
            Literal::Text(text) => format!("'{text}'"),
            Literal::Truth(truth) => truth.to_string(),
            Literal::Number(number) | Literal::Time(number, _) => number.to_string(),
        })?;
        Ok(())
    }

    /// What the column holds, and what a person could compare it with.
    fn told(self) -> (&'static str, &'static str) {
        match self {
            Meaning::Plain => ("values", "a number or a text"),
            Meaning::Truth { .. } => ("truths", "true or 'no'"),
            Meaning::Time(TimeFormat::YearFirst) => ("times", "'2024-06-30' or '2024-06-30 18:00'"),
            Meaning::Time(TimeFormat::DayFirst) => ("times, day first", "'30.06.2024' or '30.06.2024 18:00'"),
            Meaning::Time(TimeFormat::MonthFirst) => {
                ("times, month first", "'06/30/2024' or '06/30/2024 18:00'")
            }
        }
    }
}

impl Node {
    fn bind(&mut self, bind: &impl Fn(usize, &mut Test) -> Result<()>) -> Result<()> {
        match self {
            Node::Not(node) => node.bind(bind),
            Node::All(nodes) | Node::Any(nodes) => nodes.iter_mut().try_for_each(|node| node.bind(bind)),
            Node::Test(column, test) => bind(*column, test),
        }
    }

    /// Whether this column is compared letter by letter.
    fn asks_for_letters(&self, at: usize) -> bool {
        match self {
            Node::Not(node) => node.asks_for_letters(at),
            Node::All(nodes) | Node::Any(nodes) => nodes.iter().any(|node| node.asks_for_letters(at)),
            Node::Test(column, test) => *column == at && matches!(test, Test::Like(_)),
        }
    }
}
