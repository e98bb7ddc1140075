//! The trainer as its callers meet it: as good as a solver in memory, the same on any machine, resumable
//! anywhere, within its plan.

mod boost_data;
mod boost_fill;
mod boost_fit;
mod boost_pressed;
mod boost_same;
mod boost_xgboost;
mod broken;
mod early;
mod hard;
mod help;
mod ledger;
mod penalties;
mod real;
mod resume;
mod same;
mod several;
mod solvers;
mod tables;
mod wide;
