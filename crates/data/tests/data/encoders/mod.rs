//! Sketches and encoders against reference implementations; the scripts that printed the numbers stand beside.

mod by_category;
mod categories;
mod numbers;
mod quantiles;
mod sketches;
mod text;
mod times;
