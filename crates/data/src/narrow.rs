//! Fewer places for hashed columns, where the model would not fit otherwise.

use crate::encode::Encoder;
use crate::{EncodingPlan, Table};

/// A column is not hashed into fewer places than `2^LEAST_BITS`.
const LEAST_BITS: u8 = 8;

/// A hashed column that has half of the places it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    pub column: String,
    /// It has `2^bits` now.
    pub bits: u8,
}

impl Table {
    /// Halves the places of the widest hashed column, the first of equals; `None` where no column can do with fewer. What
    /// the user said about a column stands. Step by step it is the same on the way to any width.
    pub fn narrow(&mut self, plan: &mut EncodingPlan) -> Option<Narrowed> {
        let said = &self.features;
        let bits = |at: usize| match &self.encoders.features[at] {
            feature if said.get(&feature.name).is_some_and(|said| said.bits.is_some()) => 0,
            feature => match &feature.encoder {
                Encoder::Hash(hashed) => hashed.bits,
                _ => 0,
            },
        };
        let widest = (0..self.encoders.features.len())
            .rev()
            .max_by_key(|at| bits(*at))?;
        if bits(widest) <= LEAST_BITS {
            return None;
        }
        let feature = &mut self.encoders.features[widest];
        let Encoder::Hash(hashed) = &mut feature.encoder else {
            return None;
        };
        hashed.bits -= 1;
        let narrowed = Narrowed {
            column: feature.name.clone(),
            bits: hashed.bits,
        };
        for line in plan.columns.iter_mut().filter(|line| line.name == feature.name) {
            line.width = feature.encoder.width();
            let many = line.why.split(": hashed").next().unwrap_or_default();
            line.why = format!(
                "{many}: hashed into 2^{} places, fewer than usual to fit the memory",
                narrowed.bits
            );
        }
        plan.width = self.encoders.width();
        Some(narrowed)
    }
}
