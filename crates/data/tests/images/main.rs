//! Images as their users meet them: found, decoded, packed and fed; the same samples whatever threads, memory and disk.

mod attacks;
mod bad_files;
mod balance;
mod below;
mod cold;
#[path = "../support/damage.rs"]
mod damage;
mod draw;
mod feeds;
mod finding;
mod formats;
#[path = "../support/group.rs"]
mod group;
mod help;
mod many;
mod memory;
mod packs;
mod pressed;
mod sizes;
#[path = "../support/small_disk.rs"]
mod small_disk;
mod tables;
