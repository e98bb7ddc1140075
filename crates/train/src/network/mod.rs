//! Networks, compiled onto one planned arena.
//!
//! Layers are data ([`Layer`]). With the shape of a sample they become a graph in which every shape is known, or a
//! [`Misfit`] that names the layer. The graph is lowered into a program: operations forward and back over buffers whose
//! life is known, each with its place in one arena ([`Program`]). So the bytes are a number before anything is allocated;
//! the [`Machine`] that is built then allocates nothing any more.

mod arena;
mod choose;
mod cost;
mod crew;
mod design;
mod fault;
mod folder;
mod freeze;
mod graph;
mod judge;
mod kernels;
mod layer;
mod limits;
mod loss;
mod lower;
mod machine;
mod mistakes;
mod moments;
mod ops;
mod plan;
mod precision;
mod predict;
mod preset;
mod pressed;
mod prior;
mod rehearse;
mod rows;
mod rule;
mod scaling;
mod schedule;
mod setting;
mod shape;
mod stall;
mod state;
mod step;
mod tensor;
mod train;
mod weights;

pub use design::{Design, input_shape};
pub use fault::Fault;
pub use folder::NetworkModel;
pub use freeze::freeze;
pub use graph::{Misfit, units_at_the_end};
pub use layer::{
    Activation, Axes, Conv, Dense, Depthwise, Embedding, Kind, Layer, Norm, Over, Padding, Pool, PoolKind,
    Residual, Sparse, Units,
};
pub use loss::Loss;
pub use lower::{Learning, Purpose};
pub use machine::{Batch, Machine, Program, Share};
pub use mistakes::Mistake;
pub use moments::Moments;
pub use plan::{Planned, plan, with_margin};
pub use precision::Precision;
pub use predict::{PredictPlanned, predict, predict_plan};
pub use preset::Preset;
pub use pressed::least_bytes;
pub use prior::balanced;
pub use rehearse::{Rehearsal, Rehearsed, rehearse};
pub use rows::{RowNetwork, RowsPlanned, take_columns};
pub use rule::{Moment, Rule};
pub use scaling::Scaling;
pub use schedule::{Course, Schedule};
pub use setting::{Recompute, Setting};
pub use shape::Shape;
pub use stall::Fed;
pub use state::begun;
pub use step::Mix;
pub use train::{Options, Outcome, Samples, train};
