//! cgroup v2 on a copy of its files: which are written, in which order things are undone, and why not.
