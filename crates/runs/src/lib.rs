//! The run store: the only owner of on-disk run formats
