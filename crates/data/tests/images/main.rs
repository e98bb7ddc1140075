//! Images as their users meet them: found, decoded, packed and fed; the same samples whatever threads, memory and disk.

mod attacks;
mod bad_files;
mod balance;
mod draw;
mod feeds;
mod finding;
mod formats;
mod help;
mod many;
mod memory;
mod packs;
mod sizes;
mod tables;
