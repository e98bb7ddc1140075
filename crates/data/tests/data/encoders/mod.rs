//! Sketches and encoders against reference implementations; the scripts that printed the numbers stand beside.

mod quantiles;
mod sketches;
