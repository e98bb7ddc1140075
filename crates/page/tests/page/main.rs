//! The page as it is asked: every route by `oneshot`, on homes that are made for the question.

mod ansi;
mod assets;
mod compare;
mod events;
mod guard;
mod home;
mod log;
mod machine;
mod names;
mod palette;
mod run;
mod run_api;
mod runs;
mod sheets;
mod site;
mod start;
mod verdict;
