//! Text as a bag of its words: hashed, counted, weighed by how rare they are.

use serde::{Deserialize, Serialize};

use super::tokens::Words;
use super::{Hashed, Width};
use crate::sketch::Documents;
use crate::sketch::hash::hash;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextOptions {
    /// Tokens are hashed to 2^bits columns; 1 to 31.
    pub bits: u8,
    /// The hash chooses a sign too, so that tokens in one column cancel on average.
    pub signed: bool,
    pub tokens: Tokens,
    pub weigh: Weigh,
    /// Rows are scaled to length 1, so that a long text counts no more than a short one.
    pub unit_length: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// Words, and runs of up to so many of them.
    Words { longest: u8 },
    /// Runs of characters within words.
    Characters { shortest: u8, longest: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weigh {
    /// How often a token occurs in the row.
    Count,
    /// That, times `ln((1 + rows) / (1 + rows with the token)) + 1`.
    Rarity,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            bits: 18,
            signed: true,
            tokens: Tokens::Words { longest: 1 },
            weigh: Weigh::Rarity,
            unit_length: true,
        }
    }
}

/// Buffers that are kept from row to row.
#[derive(Debug, Clone, Default)]
pub struct TextScratch {
    words: Words,
    found: Vec<(u32, f32)>,
}

impl TextOptions {
    /// Counts a row for [`Weigh::Rarity`].
    pub fn count(&self, text: &[u8], documents: &mut Documents, scratch: &mut TextScratch) {
        self.gather(text, scratch);
        documents.push(scratch.found.iter().map(|(index, _)| *index));
    }

    /// The indices of a row in order, each once, with the sum of the signs of its tokens.
    fn gather(&self, text: &[u8], scratch: &mut TextScratch) {
        let hashed = Hashed {
            bits: self.bits,
            signed: self.signed,
        };
        let TextScratch { words, found } = scratch;
        words.read(text);
        found.clear();
        let add = |token: &[u8]| found.push(hashed.place(hash(token)));
        match self.tokens {
            Tokens::Words { longest } => words.word_runs(longest.into(), add),
            Tokens::Characters { shortest, longest } => {
                words.character_runs(shortest.max(1).into(), longest.into(), add);
            }
        }
        found.sort_unstable_by_key(|(index, _)| *index);
        found.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0.0 };
            same
        });
    }
}

/// `x_j = Σ sign · rarity_j` over the tokens with `hash mod 2^bits = j`, then divided by the length of `x`.
///
/// Tokens are lowercase runs of letters and digits. A row without any, or without a text, is zero.
///
/// ```
/// use tidegate_data::encode::{Text, TextOptions, TextScratch, Weigh};
/// let options = TextOptions { weigh: Weigh::Count, signed: false, unit_length: false, ..TextOptions::default() };
/// let text = Text::fit(&options, None);
/// let mut scratch = TextScratch::default();
/// let row = text.encode(b"To be, or not to be", &mut scratch);
/// assert_eq!(row.len(), 4);
/// assert_eq!(row.iter().map(|(_, count)| count).sum::<f32>(), 6.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text {
    pub options: TextOptions,
    /// A weight for each column; none where tokens are counted.
    pub rarities: Vec<f32>,
}

impl Text {
    /// The documents were counted by the same options, and are needed for [`Weigh::Rarity`] alone; without them
    /// all tokens weigh the same.
    pub fn fit(options: &TextOptions, documents: Option<&Documents>) -> Text {
        let weighed = documents.filter(|_| options.weigh == Weigh::Rarity);
        Text {
            options: options.clone(),
            rarities: weighed.map_or(Vec::new(), Documents::inverse_frequencies),
        }
    }

    /// The columns of a row that are not zero, in order, and their values.
    pub fn encode<'s>(&self, text: &[u8], scratch: &'s mut TextScratch) -> &'s [(u32, f32)] {
        self.options.gather(text, scratch);
        let found = &mut scratch.found;
        // Tokens of opposite signs may have cancelled.
        found.retain(|(_, value)| *value != 0.0);
        for (index, value) in found.iter_mut() {
            *value *= self.rarities.get(*index as usize).copied().unwrap_or(1.0);
        }
        if self.options.unit_length {
            let squares: f32 = found.iter().map(|(_, value)| value * value).sum();
            let scale = if squares > 0.0 { 1.0 / squares.sqrt() } else { 0.0 };
            found.iter_mut().for_each(|(_, value)| *value *= scale);
        }
        found
    }

    pub fn width(&self) -> Width {
        Width::sparse(1 << self.options.bits)
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        format!("{column}#{output}")
    }

    pub fn bytes(&self) -> usize {
        self.rarities.capacity() * 4
    }
}
