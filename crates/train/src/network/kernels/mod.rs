//! What the operations of a program are made of: loops over slices, without memory or threads of their own.

pub(crate) mod correlate;
pub(crate) mod elementwise;
pub(crate) mod moments;
pub(crate) mod product;
pub(crate) mod vectorized;
pub(crate) mod winograd;
