//! Sketches and encoders against reference implementations; the scripts that printed the numbers stand beside.

mod categories;
mod quantiles;
mod sketches;
