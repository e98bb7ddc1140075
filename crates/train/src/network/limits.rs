//! How large what people write may be, so that what a program takes can always be counted.

use super::layer::{Axes, Kind, Padding, Units};

/// A larger number of a layer is a slip of the hand.
pub(crate) const MOST_SIZE: usize = 1 << 24;
/// The most values of a sample, and weights of a layer.
pub(crate) const MOST_VALUES: usize = 1 << 32;

/// The numbers that a layer is made by.
pub(crate) fn sizes(kind: &Kind) -> Vec<usize> {
    let both = |axes: Axes| axes.of(true).to_vec();
    let around = |padding: Padding| match padding {
        Padding::Zeros(axes) => both(axes),
        Padding::Valid | Padding::Same => Vec::new(),
    };
    match kind {
        Kind::Dense(dense) => match dense.units {
            Units::Fixed(units) => vec![units],
            Units::Outputs => Vec::new(),
        },
        Kind::Conv(conv) => [
            vec![conv.channels, conv.groups],
            both(conv.kernel),
            both(conv.stride),
            both(conv.dilation),
            around(conv.padding),
        ]
        .concat(),
        Kind::Depthwise(depthwise) => [
            vec![depthwise.multiplier],
            both(depthwise.kernel),
            both(depthwise.stride),
            both(depthwise.dilation),
            around(depthwise.padding),
        ]
        .concat(),
        Kind::Pool(_, pool) => [
            both(pool.size),
            both(pool.stride.unwrap_or(pool.size)),
            around(pool.padding),
        ]
        .concat(),
        Kind::Norm(norm) => vec![norm.groups],
        Kind::Reshape(axes) => axes.clone(),
        Kind::Embedding(embedding) => vec![embedding.width, embedding.tokens],
        Kind::Sparse(sparse) => vec![sparse.width, sparse.places, sparse.pairs],
        Kind::GlobalPool(_) | Kind::Flatten | Kind::Dropout(_) | Kind::Activation(_) | Kind::Residual(_) => {
            Vec::new()
        }
    }
}
