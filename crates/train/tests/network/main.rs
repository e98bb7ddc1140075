//! Networks, judged by what PyTorch makes of the same layers (`pytorch.py`), by differences, and by their own promises.

mod fitting;
mod knobs;
mod moments;
mod precision;
mod promises;
mod pytorch;
mod sample;
mod training;
