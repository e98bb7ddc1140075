//! A column's way into numbers, one file per encoder.
//!
//! Every encoder is plain data, fitted from the [sketches](crate::sketch) of one streaming pass by `fit`, and has
//! a `width()` of dense and sparse outputs and a `name(column, output)` for each, dense ones first. Dense
//! encoders write into rows that are `stride` numbers apart; sparse ones give the index of what is not zero.
//! Numbers come in as `f64`, not-a-number for missing; categories as their [hash](crate::sketch::hash::hash()),
//! [`MISSING`](crate::sketch::hash::MISSING) for missing.

mod calendar;
mod category;
mod cuts;
pub mod dummy;
mod feature;
pub mod flag;
pub mod frequency;
pub mod hash;
pub mod impact;
pub mod lookup;
pub mod number;
pub mod ordinal;
pub mod scale;
pub mod text;
pub mod time;
pub mod time_format;
mod tokens;
pub mod width;

pub use cuts::MOST_CUTS;
pub use dummy::{Dummy, DummyOptions};
pub(crate) use feature::Cells;
pub use feature::{Encoder, Encoders, Feature};
pub use flag::Flag;
pub use frequency::{Frequency, Measure};
pub use hash::Hashed;
pub use impact::{Impact, ImpactFolds, ImpactOptions};
pub use lookup::{Keys, Lookup};
pub use number::{Clip, Impute, Number, NumberOptions, NumberScale, ScaleBy};
pub use ordinal::{Order, Ordinal};
pub use scale::Scale;
pub use text::{Text, TextOptions, TextScratch, Tokens, Weigh};
pub use time::{ScaledPart, Time, TimeOptions, TimePart};
pub use time_format::{TimeFormat, TimeGuess, parse_time};
pub use width::Width;
