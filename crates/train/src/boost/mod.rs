//! Gradient boosted trees over binned rows, in memory or streamed.
//!
//! A number becomes one of 256 bins ([`FeatureBins`]) once; after that a row is a byte per feature, in
//! [`Blocks`] of at most [`MOST_BLOCK_ROWS`]. A tree is grown level by level (`grow`). In every pass over the blocks
//! (`pass`), the rows of a block are first grouped by the nodes that the last splits made (`partition`); then
//! the slopes and curvatures of the loss are added up by bin for one child of every split (`histogram`), the
//! other being what is left of the parent; then every node finds its best split (`split`). The pass that ends
//! a tree updates the margins and begins the next one, so a tree of depth `d` takes `d` passes, and where the
//! blocks and their state live makes no other difference than time ([`Plan`]); where memory is taken away, they are let go
//! of between two passes (`crew`).
//!
//! All sums that decide are sums of integers (`objective`), so the forest is the same to the last bit for any
//! number of threads, any budget, and after a resume.

mod bins;
mod categories;
mod checkpoint;
mod crew;
mod evaluate;
mod fill;
mod forest;
mod grow;
mod hash;
mod histogram;
mod objective;
mod options;
mod partition;
mod pass;
mod permutation;
mod plan;
mod rows;
mod scratch;
mod split;
mod start;
mod state;
mod store;
mod train;
mod tree;
mod xgboost;

pub use bins::{FeatureBins, MAX_CATEGORIES, MAX_CUTS};
pub use categories::BinSet;
pub use checkpoint::{Settings, load_checkpoint, save_checkpoint};
pub use fill::{fill, first_rows};
pub use forest::{Forest, Importance, Tree};
pub use objective::{Objective, predictions};
pub use options::{Growth, Options};
pub use permutation::{PERMUTED_ROWS, Permutation, Permuted, permutation_bytes, permutation_importance};
pub use plan::{Kept, Plan, ROWS, Shape, Streamed, TREES, plan};
pub use rows::{BLOCK_ROWS, Block, BlockBuffer, Blocks, MOST_BLOCK_ROWS, Part, Resident, rows_bytes};
pub use store::Rows;
pub use train::{Outcome, Round, Trained, Training, train};
pub use xgboost::to_xgboost;
