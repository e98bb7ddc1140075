//! What every verb starts from: the run store of a home folder, tidied up.

use std::path::{Path, PathBuf};

use tidegate_memory::Host;
use tidegate_runs::{Run, Store};
use tidegate_train::sweep;

use crate::{Error, Result};

/// An open run store. Opening it closes runs whose supervisor was killed.
pub struct Session {
    /// From the root: a worker may stand elsewhere.
    pub home: PathBuf,
    pub host: Host,
    pub store: Store,
    /// Runs that were found dead and closed.
    pub recovered: Vec<Run>,
    /// Why dead runs could not be closed: a full or read-only disk is no reason not to read.
    pub unrecovered: Option<Error>,
}

impl Session {
    pub fn open(home: &Path) -> Result<Session> {
        let host = Host::live();
        let store = Store::open(home)?;
        let (recovered, unrecovered) = match tidegate_watch::close_orphans(&host, &store) {
            Ok(recovered) => (recovered, None),
            Err(error) => (Vec::new(), Some(error.into())),
        };
        for run in &recovered {
            let dir = store.run_dir(&run.id);
            sweep(&dir.checkpoint());
            sweep(&dir.model());
        }
        Ok(Session {
            home: std::path::absolute(home).unwrap_or_else(|_| home.into()),
            host,
            store,
            recovered,
            unrecovered,
        })
    }

    /// Where packs are kept.
    pub fn packs(&self) -> PathBuf {
        self.home.join("packs")
    }

    /// `--home`, else `TIDEGATE_HOME`, else `.tidegate` in the working folder.
    pub fn default_home() -> PathBuf {
        std::env::var_os("TIDEGATE_HOME")
            .filter(|home| !home.is_empty())
            .map_or_else(|| ".tidegate".into(), PathBuf::from)
    }
}
