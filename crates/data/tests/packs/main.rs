//! Packs as their users meet them: the same batches as the source gives, whole or absent, on any disk.

mod arrow;
mod bins;
mod builders;
mod disk;
mod help;
mod passes;
mod peak;
mod samples;
mod store;
mod torn;
