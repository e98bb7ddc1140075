//! Trainers, checkpoints and model folders
