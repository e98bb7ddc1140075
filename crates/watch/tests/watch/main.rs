//! The supervisor on small programs that finish, fail, hang, flood, crash and get killed.
//!
//! Every test ends with the same question: is anything left behind?

mod devices;
mod ends;
mod foreign;
mod help;
mod hostile;
mod line;
mod notebook;
mod orphans;
mod records;
mod remedies;
mod script;
mod stops;
mod v2;
mod wire;
