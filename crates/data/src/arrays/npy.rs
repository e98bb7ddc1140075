//! The header of NumPy's `.npy`, versions 1 to 3: a mark, a length, and a Python dictionary as text.
//!
//! See "NPY format" in NumPy's reference, `numpy.lib.format`.

use super::element::Element;
use super::header::{Fault, Header, Holds};

const MAGIC: &[u8] = b"\x93NUMPY";

pub(super) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The header at the beginning of `bytes`, which may not hold all of it.
pub(super) fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    let broken = |what: String| Fault::Broken("NumPy", what);
    let Some(&[major, _minor]) = bytes.get(6..8).and_then(|version| version.first_chunk()) else {
        return Err(Fault::LongerThan(8));
    };
    let (start, length) = match major {
        1 => match bytes.get(8..10).and_then(|length| length.first_chunk()) {
            Some(length) => (10, usize::from(u16::from_le_bytes(*length))),
            None => return Err(Fault::LongerThan(10)),
        },
        2 | 3 => match bytes.get(8..12).and_then(|length| length.first_chunk()) {
            Some(length) => (12, u32::from_le_bytes(*length) as usize),
            None => return Err(Fault::LongerThan(12)),
        },
        _ => return Err(broken(format!("version {major} is not known"))),
    };
    let end = start + length;
    let Some(text) = bytes.get(start..end) else {
        return Err(Fault::LongerThan(end));
    };
    let entries = Literal { text, at: 0 }.dictionary().map_err(broken)?;
    let find = |name: &str| {
        let mut found = entries.iter().filter(|(key, _)| key == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Ok(value),
            (None, _) => Err(broken(format!("it has no {name:?}"))),
            _ => Err(broken(format!("it has two of {name:?}"))),
        }
    };
    let shape = match find("shape")? {
        Python::Tuple(axes) => axes.clone(),
        _ => return Err(broken("its shape is no list of numbers".into())),
    };
    let (holds, big_endian) = match find("descr")? {
        Python::Text(descr) => element(descr).ok_or_else(|| Fault::Element(descr.clone()))?,
        Python::List => return Err(Fault::Element("records of several fields".into())),
        _ => return Err(broken("its type is no text".into())),
    };
    // One axis is in both orders.
    let flat = shape.iter().filter(|axis| **axis > 1).count() < 2;
    match find("fortran_order")? {
        Python::Bool(false) => {}
        Python::Bool(true) if flat => {}
        Python::Bool(true) => return Err(Fault::Fortran(shape)),
        _ => return Err(broken("its order is neither True nor False".into())),
    }
    Ok(Header {
        holds,
        big_endian,
        shape,
        data_at: end as u64,
    })
}

/// A type as NumPy writes it, `<f4`, and whether its most significant byte is first.
fn element(descr: &str) -> Option<(Holds, bool)> {
    let (order, rest) = match descr.as_bytes().first()? {
        b'<' | b'>' | b'|' | b'=' => descr.split_at(1),
        _ => ("|", descr),
    };
    let width = |rest: &str| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| rest.parse().ok())?
    };
    let holds = match rest {
        "b1" | "?" => Holds::Number(Element::Bool),
        "u1" | "B" => Holds::Number(Element::U8),
        "i1" | "b" => Holds::Number(Element::I8),
        "u2" => Holds::Number(Element::U16),
        "i2" => Holds::Number(Element::I16),
        "u4" => Holds::Number(Element::U32),
        "i4" => Holds::Number(Element::I32),
        "u8" => Holds::Number(Element::U64),
        "i8" => Holds::Number(Element::I64),
        "f2" => Holds::Number(Element::F16),
        "f4" => Holds::Number(Element::F32),
        "f8" => Holds::Number(Element::F64),
        _ => match rest.split_at_checked(1)? {
            ("S" | "a", bytes) => Holds::Bytes(width(bytes)?),
            ("U", letters) => Holds::Letters(width(letters)?),
            _ => return None,
        },
    };
    Some((holds, order == ">"))
}

/// The values that the dictionary of a header can hold.
#[derive(Debug)]
enum Python {
    Text(String),
    Bool(bool),
    Tuple(Vec<usize>),
    /// Of a record's fields; not looked into.
    List,
}

/// Python's notation, as far as headers use it.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    fn dictionary(&mut self) -> Result<Vec<(String, Python)>, String> {
        self.expect(b'{')?;
        let mut entries = Vec::new();
        while !self.eat(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let value = self.value()?;
            entries.push((key, value));
            if !self.eat(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        match self.peek() {
            None => Ok(entries),
            Some(_) => Err(self.unexpected()),
        }
    }

    fn value(&mut self) -> Result<Python, String> {
        match self.peek() {
            Some(b'\'' | b'"') => self.string().map(Python::Text),
            Some(b'(') => self.tuple().map(Python::Tuple),
            Some(b'[') => self.list().map(|()| Python::List),
            Some(b'T') if self.word(b"True") => Ok(Python::Bool(true)),
            Some(b'F') if self.word(b"False") => Ok(Python::Bool(false)),
            _ => Err(self.unexpected()),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.unexpected()),
        };
        let start = self.at + 1;
        let rest = self.text.get(start..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == quote) else {
            return Err("a text never ends".into());
        };
        self.at = start + length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.eat(b')') {
            numbers.push(self.number()?);
            if !self.eat(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<usize, String> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.unexpected());
        }
        let text = String::from_utf8_lossy(&rest[..digits]);
        let number = text.parse().map_err(|_| format!("{text} is too large"))?;
        self.at += digits;
        // As Python 2 wrote long numbers.
        self.eat(b'L');
        Ok(number)
    }

    /// Passes over a list, whatever is in it.
    fn list(&mut self) -> Result<(), String> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'[') => depth += 1,
                Some(b']') => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err("a list never ends".into()),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &[u8]) -> bool {
        let found = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word));
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.eat(byte) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn unexpected(&mut self) -> String {
        match self.peek() {
            Some(byte) => format!("{:?} at letter {}", char::from(byte), self.at + 1),
            None => "it ends too early".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(major: u8, text: &str) -> Vec<u8> {
        let mut bytes = [MAGIC, &[major, 0]].concat();
        match major {
            1 => bytes.extend((text.len() as u16).to_le_bytes()),
            _ => bytes.extend((text.len() as u32).to_le_bytes()),
        }
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn headers_of_all_versions_are_read() {
        for major in 1..=3 {
            let bytes = header(
                major,
                "{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }          \n",
            );
            let found = parse(&bytes).unwrap();
            assert_eq!(found.holds, Holds::Number(Element::F32));
            assert_eq!(found.shape, [60_000, 28, 28]);
            assert_eq!(found.data_at, bytes.len() as u64);
            assert!(!found.big_endian);
        }
    }

    #[test]
    fn writing_may_differ_as_python_allows() {
        let check = |text: &str, shape: &[usize], big_endian: bool| {
            let found = parse(&header(1, text)).unwrap();
            assert_eq!(
                (found.shape.as_slice(), found.big_endian),
                (shape, big_endian),
                "{text}"
            );
        };
        check(
            "{\"shape\":(3,),\"descr\":\">i2\",\"fortran_order\":False}",
            &[3],
            true,
        );
        check("{'descr':'|u1','fortran_order':True,'shape':(5L,)}", &[5], false);
        check(
            "{ 'shape' : ( ) , 'descr' : 'u1' , 'fortran_order' : False , }\n",
            &[],
            false,
        );
        check(
            "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 7, 1)}",
            &[1, 7, 1],
            false,
        );
    }

    #[test]
    fn what_is_wrong_with_a_header_is_said() {
        let check = |text: &str, expected: &str| {
            let found = format!("{:?}", parse(&header(1, text)).unwrap_err());
            assert!(found.contains(expected), "{text}: {found}");
        };
        check("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "<c8");
        check("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "|O");
        check(
            "{'descr': [('a', '<f4'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': (3,)}",
            "records",
        );
        check(
            "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}",
            "Fortran([3, 2])",
        );
        check("{'descr': '<f4', 'fortran_order': False}", "no \\\"shape\\\"");
        check(
            "{'shape': (1,), 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
            "two of",
        );
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "'-' at letter",
        );
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "too large",
        );
        check("{'descr': '<f4", "never ends");
        check("", "ends too early");
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} and more",
            "'a' at letter",
        );
        assert_eq!(parse(b"\x93NUMPY\x01"), Err(Fault::LongerThan(8)));
        assert_eq!(
            parse(b"\x93NUMPY\x01\x00\xff\xff{"),
            Err(Fault::LongerThan(65_545))
        );
        assert!(matches!(parse(b"\x93NUMPY\x07\x00"), Err(Fault::Broken(..))));
    }
}
