//! Runs whose supervisor is gone. The program closes such a run and says why it ended; the page only sees that it has to.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_memory::{Host, start_time};
use tidegate_runs::Run;

use crate::site::Site;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs that the program was told of, each once: one of another machine or container is not its to close.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    told: Mutex<HashSet<String>>,
}

impl Site {
    /// Has those closed that are said to run and have nobody who watches over them. Does not wait for it.
    pub(crate) fn close_orphans<'r>(self: &Arc<Site>, runs: impl IntoIterator<Item = &'r Run>) {
        let host = Host::live();
        let is_left = |run: &&Run| {
            let supervisor = run.supervisor.filter(|_| !run.status.is_over());
            supervisor.is_some_and(|process| start_time(&host, process.pid) != Some(process.start_time))
        };
        let mut told = self.orphans.told.lock().unwrap_or_else(PoisonError::into_inner);
        // All of them first: one question closes every one.
        let new = runs
            .into_iter()
            .filter(is_left)
            .map(|run| told.insert(run.id.clone()));
        if new.fold(false, |any, new| any | new) {
            let site = self.clone();
            tokio::spawn(async move {
                // Every command closes them when it begins. What stays open is as it was before.
                let words = ["runs", "--limit", "1"].map(OsString::from);
                let _ = site.order(&words, PATIENCE).await;
            });
        }
    }
}
