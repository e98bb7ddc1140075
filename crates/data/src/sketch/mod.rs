//! What one streaming pass keeps of a column: bounded state, from which every encoder is fitted.
//!
//! Each sketch is filled value by value or block by block, and two of them that saw consecutive parts of the
//! data become one with `merge`. The result depends on the order of merging alone, never on threads. Missing
//! values are not numbers: they are left out of the numeric sketches and have a place of their own among the
//! categories.

pub mod categories;
mod counts;
pub mod distinct;
pub mod documents;
pub mod hash;
pub mod moments;
pub mod quantiles;
mod records;
pub mod times;

pub use categories::CategoryTable;
pub use distinct::Distinct;
pub use documents::Documents;
pub use moments::Moments;
pub use quantiles::Quantiles;
pub use records::{Category, Shape, Targets};
pub use times::{Resolution, Times};
