//! Reading a condition: `age >= 18 and (city in ('Oslo', 'Rome') or not member is null)`.
//!
//! Columns stand bare, or in backticks where their names have blanks. Texts stand in single or double quotes, the
//! quote itself doubled. Words are the same in capitals.

use super::condition::{Compare, Literal, Node, Test};
use crate::{Error, Number, Result, parse_number};

/// Parentheses and `not`s inside each other, at the most: deeper ones would only exhaust the stack.
const DEPTH: usize = 64;

/// The columns of a condition in the order of their first appearance, and what it asks of them.
pub(super) fn parse(text: &str) -> Result<(Vec<String>, Node)> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        text,
        columns: Vec::new(),
        depth: 0,
    };
    let node = parser.any_of()?;
    match parser.peek() {
        Token::End => Ok((parser.columns, node)),
        _ => Err(parser.expected("and, or, or the end")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A bare word: a column or a word of the language.
    Word(String),
    /// A name in backticks.
    Name(String),
    Number(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// Longer signs first.
const SIGNS: [&str; 11] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ","];

/// The tokens with the bytes at which they start.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (len, token) = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '\'' | '"' | '`' => {
                let (len, inner) = quoted(rest, first).ok_or_else(|| {
                    let what = format!("this {first} is never closed");
                    refused(text, at, what)
                })?;
                let token = if first == '`' {
                    Token::Name(inner)
                } else {
                    Token::Text(inner)
                };
                (len, token)
            }
            '0'..='9' | '.' | '-' | '+' => {
                let len = number_len(rest);
                let number = match parse_number(&rest.as_bytes()[..len]) {
                    Number::Value(value) => value,
                    _ => return Err(refused(text, at, "this is not a number".into())),
                };
                (len, Token::Number(number))
            }
            _ if first.is_alphabetic() || first == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')));
                let len = end.unwrap_or(rest.len());
                (len, Token::Word(rest[..len].into()))
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (sign.len(), Token::Sign(sign)),
                None => return Err(refused(text, at, format!("{first:?} means nothing here"))),
            },
        };
        tokens.push((at, token));
        at += len;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// What stands between quotes, doubled ones made single, and the bytes that it took.
fn quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let mut inner = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            inner.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
            inner.push(quote);
            chars.next();
        } else {
            return Some((at + 1, inner));
        }
    }
    None
}

fn number_len(text: &str) -> usize {
    let mut before = ' ';
    let is_part = |c: char| {
        let sign = matches!(c, '+' | '-') && matches!(before, ' ' | 'e' | 'E');
        before = c;
        c.is_ascii_alphanumeric() || c == '.' || sign
    };
    let mut is_part = is_part;
    text.find(|c: char| !is_part(c)).unwrap_or(text.len())
}

fn refused(text: &str, at: usize, what: String) -> Error {
    Error::Condition {
        text: text.into(),
        at: text[..at].chars().count() + 1,
        what,
    }
}

struct Parser<'t> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    text: &'t str,
    columns: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        // The end stays the next token for ever.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word));
        self.at += usize::from(is_it);
        is_it
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Token::End => "the end",
            _ => {
                let (start, end) = (self.tokens[self.at].0, self.tokens[self.at + 1].0);
                self.text[start..end].trim_end()
            }
        };
        refused(
            self.text,
            self.tokens[self.at].0,
            format!("expected {what}, found {found}"),
        )
    }

    fn any_of(&mut self) -> Result<Node> {
        let mut nodes = vec![self.all_of()?];
        while self.takes_word("or") {
            nodes.push(self.all_of()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.swap_remove(0)
        } else {
            Node::Any(nodes)
        })
    }

    fn all_of(&mut self) -> Result<Node> {
        let mut nodes = vec![self.one()?];
        while self.takes_word("and") {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.swap_remove(0)
        } else {
            Node::All(nodes)
        })
    }

    fn one(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH {
            let place = self.tokens[self.at].0;
            return Err(refused(self.text, place, "this is nested too deeply".into()));
        }
        let node = if self.takes_word("not") {
            Node::Not(Box::new(self.one()?))
        } else if self.takes_sign("(") {
            let node = self.any_of()?;
            if !self.takes_sign(")") {
                return Err(self.expected("and, or, or a closing parenthesis"));
            }
            node
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    /// A column and what is asked of it, or a literal, a sign and a column.
    fn test(&mut self) -> Result<Node> {
        if matches!(self.peek(), Token::Number(_) | Token::Text(_)) {
            let literal = self.literal()?;
            let Some(compare) = self.comparison() else {
                return Err(self.expected("a comparison; names with blanks stand in `backticks`"));
            };
            let column = self.column()?;
            return Ok(Node::Test(column, Test::Compare(compare.turned(), literal)));
        }
        let column = self.column()?;
        if let Some(compare) = self.comparison() {
            return Ok(Node::Test(column, Test::Compare(compare, self.literal()?)));
        }
        if self.takes_word("is") {
            let not = self.takes_word("not");
            if !self.takes_word("null") {
                return Err(self.expected("null"));
            }
            return Ok(negated(not, Node::Test(column, Test::Null)));
        }
        let not = self.takes_word("not");
        let node = if self.takes_word("in") {
            Node::Test(column, Test::In(self.list()?))
        } else if self.takes_word("between") {
            let low = Node::Test(column, Test::Compare(Compare::AtLeast, self.literal()?));
            if !self.takes_word("and") {
                return Err(self.expected("and"));
            }
            let high = Node::Test(column, Test::Compare(Compare::AtMost, self.literal()?));
            Node::All(vec![low, high])
        } else if self.takes_word("like") {
            match self.next() {
                Token::Text(pattern) => Node::Test(column, Test::Like(pattern)),
                _ => {
                    self.at -= 1;
                    return Err(self.expected("a text, such as 'New %'"));
                }
            }
        } else {
            return Err(self.expected("a comparison, is, in, between or like"));
        };
        Ok(negated(not, node))
    }

    fn list(&mut self) -> Result<Vec<Literal>> {
        if !self.takes_sign("(") {
            return Err(self.expected("an opening parenthesis"));
        }
        let mut literals = vec![self.literal()?];
        while self.takes_sign(",") {
            literals.push(self.literal()?);
        }
        match self.takes_sign(")") {
            true => Ok(literals),
            false => Err(self.expected("a comma or a closing parenthesis")),
        }
    }

    fn column(&mut self) -> Result<usize> {
        const RESERVED: [&str; 11] = [
            "and", "or", "not", "in", "is", "null", "between", "like", "true", "false", "",
        ];
        let name = match self.peek() {
            Token::Word(word) if !RESERVED.contains(&word.to_lowercase().as_str()) => word.clone(),
            Token::Name(name) => name.clone(),
            _ => return Err(self.expected("a column")),
        };
        self.at += 1;
        let known = self.columns.iter().position(|column| *column == name);
        Ok(known.unwrap_or_else(|| {
            self.columns.push(name);
            self.columns.len() - 1
        }))
    }

    fn comparison(&mut self) -> Option<Compare> {
        let Token::Sign(sign) = self.peek() else {
            return None;
        };
        let compare = match *sign {
            "=" | "==" => Compare::Equal,
            "!=" | "<>" => Compare::Unequal,
            "<" => Compare::Below,
            "<=" => Compare::AtMost,
            ">" => Compare::Above,
            ">=" => Compare::AtLeast,
            _ => return None,
        };
        self.at += 1;
        Some(compare)
    }

    fn literal(&mut self) -> Result<Literal> {
        let literal = match self.peek() {
            Token::Number(number) => Literal::Number(*number),
            Token::Text(text) => Literal::Text(text.clone()),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => Literal::Truth(true),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => Literal::Truth(false),
            Token::Word(word) if word.eq_ignore_ascii_case("null") => {
                return Err(self.expected("a value (is null asks for missing ones)"));
            }
            _ => return Err(self.expected("a number, a text in quotes, true or false")),
        };
        self.at += 1;
        Ok(literal)
    }
}

fn negated(not: bool, node: Node) -> Node {
    if not { Node::Not(Box::new(node)) } else { node }
}
