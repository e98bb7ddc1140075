//! Packs as their users meet them: the same batches as the source gives, whole or absent, on any disk.

mod arrow;
mod bins;
mod builders;
#[path = "../support/damage.rs"]
mod damage;
mod disk;
mod help;
mod passes;
mod peak;
mod samples;
#[path = "../support/small_disk.rs"]
mod small_disk;
mod store;
mod torn;
