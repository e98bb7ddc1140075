//! Tidegate: training that never floods memory
