//! Huffman codes, as tables that are looked up by the next bits.

use super::Fault;

/// Codes of at most so many bits are found at once. With 11 or 12 no photo was faster, and tables take longer to make.
pub(super) const LOOKUP_BITS: u32 = 10;

/// Coefficients have at most 10 bits and differences of their means 11, but broken tables may tell 15.
const MOST_SIZE: u8 = 13;

/// One code, and all that is needed to step over it, in 32 bits:
///
/// ```text
///   bits  0–5    length of the code and of the value behind it
///   bits  8–12   length of the code
///   bits 16–21   63 less the length of the value
///   bits 24–31   how far it goes on: past the zeros before the coefficient, and the coefficient
/// ```
///
/// Zero: none of the short codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Code(pub u32);

/// How far the end of a block goes on: past every place of a block.
pub(super) const END_OF_BLOCK: u32 = 128;
/// How far a code that does not exist goes on: past the block too, but not so far.
const BROKEN: u32 = 100;

impl Code {
    const NONE: Code = Code(0);

    fn new(length: u32, size: u8, advance: u32) -> Code {
        let size = u32::from(size);
        Code((length + size) | length << 8 | (63 - size) << 16 | advance << 24)
    }

    #[inline(always)]
    pub(super) fn is_long(self) -> bool {
        self.0 == 0
    }

    /// Bits of code and value.
    #[inline(always)]
    pub(super) fn whole_length(self) -> u32 {
        self.0 & 63
    }

    #[inline(always)]
    pub(super) fn advance(self) -> u32 {
        self.0 >> 24
    }

    /// Bits of the value.
    #[inline(always)]
    pub(super) fn size(self) -> u32 {
        63 - (self.0 >> 16 & 63)
    }

    #[inline(always)]
    pub(super) fn length(self) -> u32 {
        self.0 >> 8 & 31
    }

    pub(super) fn is_broken(self) -> bool {
        self.advance() == BROKEN
    }

    /// The value behind the code, out of the bits from the code on: a first bit of zero makes it negative.
    #[inline(always)]
    pub(super) fn value(self, bits: u64) -> i32 {
        let bits = bits << (self.0 >> 8 & 63);
        let sign = !((bits as i64) >> 63);
        let size = ((bits ^ sign as u64) >> 1) >> (self.0 >> 16 & 63);
        (size as i32 ^ sign as i32).wrapping_sub(sign as i32)
    }
}

/// Up to two codes of details with their values, where these are short enough to be looked up as well, in 64 bits:
///
/// ```text
///   bits  0–7    length of all of it
///   bits  8–15   how far the first goes on
///   bits 16–23   how far the second goes on from there; zero where there is none
///   bits 24–31   length of the first with its value
///   bits 32–47   value of the first
///   bits 48–63   value of the second; where there is none, of the first again
/// ```
///
/// Zero: not even one is short enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pair(pub u64);

impl Pair {
    const NONE: Pair = Pair(0);

    /// The first of these bits, if it is short enough.
    fn single(code: Code, bits: u64) -> Pair {
        if code.is_long() || code.is_broken() || code.whole_length() > LOOKUP_BITS {
            return Pair::NONE;
        }
        let length = u64::from(code.whole_length());
        let value = u64::from(code.value(bits) as u16);
        Pair(length | u64::from(code.advance()) << 8 | length << 24 | value << 32 | value << 48)
    }

    /// Both, if there is room for the second.
    fn and(self, second: Pair) -> Pair {
        let ends = self.first() >= END_OF_BLOCK;
        let length = self.length() + second.length();
        if second.is_none() || ends || length > u64::from(LOOKUP_BITS) {
            return self;
        }
        let first = self.0 & 0x0000_ffff_ff00_ff00;
        Pair(first | length | u64::from(second.first()) << 16 | second.0 >> 48 << 48)
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Bits of all of it. Only the lowest 8 bits count.
    #[inline(always)]
    fn length(self) -> u64 {
        self.0 & 0xff
    }

    #[inline(always)]
    pub(super) fn first(self) -> u32 {
        (self.0 >> 8) as u32 & 0xff
    }

    #[inline(always)]
    pub(super) fn second(self) -> u32 {
        (self.0 >> 16) as u32 & 0xff
    }

    #[inline(always)]
    pub(super) fn first_length(self) -> u32 {
        (self.0 >> 24) as u32 & 0xff
    }

    #[inline(always)]
    pub(super) fn first_value(self) -> i16 {
        (self.0 >> 32) as i16
    }

    #[inline(always)]
    pub(super) fn second_value(self) -> i16 {
        (self.0 >> 48) as i16
    }
}

/// What the symbols of a table mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The size of a difference between means of blocks.
    Mean,
    /// A run of zeros and the size of a coefficient.
    Detail,
    /// The same, where a run without a coefficient ends many blocks.
    Progressive,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    lookup: [Code; 1 << LOOKUP_BITS],
    /// Of details alone.
    pairs: [Pair; 1 << LOOKUP_BITS],
    /// Codes of each length are below this, with their bits first; and their symbols, less the first code.
    limits: [u32; 17],
    offsets: [i32; 17],
    symbols: [u8; 256],
    /// What it was made of; the same again needs no work.
    counts: [u8; 16],
    kind: Kind,
    n_symbols: usize,
}

impl Table {
    pub(super) const EMPTY: Table = Table {
        lookup: [Code::NONE; 1 << LOOKUP_BITS],
        pairs: [Pair::NONE; 1 << LOOKUP_BITS],
        limits: [0; 17],
        offsets: [0; 17],
        symbols: [0; 256],
        counts: [0; 16],
        kind: Kind::Mean,
        n_symbols: 0,
    };

    /// Makes the table of so many codes of each length, and their symbols.
    pub(super) fn define(&mut self, kind: Kind, counts: &[u8; 16], symbols: &[u8]) -> Result<(), Problem> {
        if self.kind == kind && self.counts == *counts && self.symbols[..self.n_symbols] == *symbols {
            return Ok(());
        }
        *self = Table::EMPTY;
        let mut code = 0u32;
        let mut taken = 0;
        for length in 1..=16 {
            let n = usize::from(counts[length - 1]);
            let length = length as u32;
            self.offsets[length as usize] = taken as i32 - code as i32;
            let bits_left = LOOKUP_BITS.checked_sub(length);
            for symbol in symbols.iter().skip(taken).take(n) {
                if code >> length != 0 {
                    *self = Table::EMPTY;
                    return Err(Problem);
                }
                if let Some(left) = bits_left {
                    let first = (code << left) as usize;
                    self.lookup[first..first + (1 << left)].fill(meaning(kind, length, *symbol));
                }
                code += 1;
            }
            taken += n;
            self.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        self.symbols[..symbols.len()].copy_from_slice(symbols);
        self.counts = *counts;
        self.kind = kind;
        self.n_symbols = symbols.len();
        if kind == Kind::Detail {
            self.pair();
        }
        Ok(())
    }

    fn pair(&mut self) {
        const MASK: usize = (1 << LOOKUP_BITS) - 1;
        for (index, (pair, code)) in self.pairs.iter_mut().zip(&self.lookup).enumerate() {
            *pair = Pair::single(*code, (index as u64) << (64 - LOOKUP_BITS));
        }
        for index in 0..self.pairs.len() {
            let first = self.pairs[index];
            let behind = (index << first.first_length()) & MASK;
            let code = self.lookup[behind];
            let second = Pair::single(code, (behind as u64) << (64 - LOOKUP_BITS));
            self.pairs[index] = first.and(second);
        }
    }

    /// What is looked up of the details at the front of these bits.
    #[inline(always)]
    pub(super) fn pair_at(&self, bits: u64) -> Pair {
        self.pairs[(bits >> (64 - LOOKUP_BITS)) as usize]
    }

    /// The code at the front of these bits, if it is a short one.
    #[inline(always)]
    pub(super) fn short(&self, bits: u64) -> Code {
        self.lookup[(bits >> (64 - LOOKUP_BITS)) as usize]
    }

    /// The code at the front of these bits, longer than those that are looked up.
    #[cold]
    #[inline(never)]
    pub(super) fn long(&self, bits: u64) -> Code {
        let front = (bits >> 48) as u32;
        for length in LOOKUP_BITS + 1..=16 {
            if front < self.limits[length as usize] {
                let index = (front >> (16 - length)) as i32 + self.offsets[length as usize];
                let symbol = usize::try_from(index)
                    .ok()
                    .and_then(|index| self.symbols.get(index));
                return symbol.map_or(Code::new(1, 0, BROKEN), |symbol| {
                    meaning(self.kind, length, *symbol)
                });
            }
        }
        Code::new(1, 0, BROKEN)
    }

    #[inline(always)]
    pub(super) fn code(&self, bits: u64) -> Code {
        match self.short(bits) {
            code if code.is_long() => self.long(bits),
            code => code,
        }
    }
}

fn meaning(kind: Kind, length: u32, symbol: u8) -> Code {
    let (run, size) = (u32::from(symbol >> 4), symbol & 15);
    match kind {
        Kind::Mean if symbol > MOST_SIZE => Code::new(length, 0, BROKEN),
        Kind::Mean => Code::new(length, symbol, 1),
        _ if size > MOST_SIZE => Code::new(length, 0, BROKEN),
        Kind::Detail if size == 0 && run < 15 => Code::new(length, 0, END_OF_BLOCK),
        _ => Code::new(length, size, run + 1),
    }
}

/// More codes than there is room for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem;

impl Problem {
    pub(super) fn at(self, at: usize) -> Fault {
        Fault::Broken {
            at,
            what: "a Huffman table with too many codes",
        }
    }
}
