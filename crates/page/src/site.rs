//! What all requests share: the options, the open stores, and how much may be asked at a time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_runs::Store;
use tokio::sync::Semaphore;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::orphans::Orphans;

/// Questions to the program at a time: each may be a process that reads data. And orders, which do not.
const ASKED_AT_ONCE: usize = 2;
const ORDERED_AT_ONCE: usize = 4;
/// Stores that are kept open: one for each request that is answered at the same time.
const KEPT_STORES: usize = 4;
/// Runs that are remembered to have been asked to stop.
const KEPT_STOPS: usize = 64;

/// What is shown, and to whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the runs are.
    pub home: PathBuf,
    /// The program that is asked, and started.
    pub program: PathBuf,
    /// Folders of which data may be chosen for a training, without symbolic links in their paths.
    pub roots: Vec<PathBuf>,
    /// Whoever asks must know it; without one, only this machine may ask.
    pub token: Option<String>,
}

/// A page that can be served.
#[derive(Debug)]
pub struct Site {
    pub options: Options,
    stores: Mutex<Vec<Store>>,
    pub(crate) asking: Semaphore,
    pub(crate) ordering: Semaphore,
    pub(crate) answers: Answers,
    /// Runs that were asked to stop here, the last ones.
    stopping: Mutex<VecDeque<String>>,
    pub(crate) orphans: Orphans,
    /// What was last seen of the machine.
    pub(crate) machine: Machine,
}

impl Site {
    /// Opens the store, and with it brings an older one up to date.
    pub fn open(options: Options) -> Result<Arc<Site>> {
        let store = Store::open(&options.home)?;
        Ok(Arc::new(Site {
            options,
            stores: Mutex::new(vec![store]),
            asking: Semaphore::new(ASKED_AT_ONCE),
            ordering: Semaphore::new(ORDERED_AT_ONCE),
            answers: Answers::default(),
            stopping: Mutex::default(),
            orphans: Orphans::default(),
            machine: Machine::default(),
        }))
    }

    /// Reads the store, or files beside it, without holding up other requests.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Site>,
        work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let site = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let store = match site.take_store() {
                Some(store) => store,
                None => Store::open(&site.options.home)?,
            };
            let read = work(&store);
            site.put_back(store);
            read
        });
        reading.await.map_err(|_| Error::Bug)?
    }

    /// Whether a run was asked to stop.
    pub(crate) fn is_stopping(&self, id: &str) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        stopping.iter().any(|known| known == id)
    }

    /// It was.
    pub(crate) fn stops(&self, id: &str) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        if !stopping.iter().any(|known| known == id) {
            stopping.push_back(id.into());
        }
        if stopping.len() > KEPT_STOPS {
            stopping.pop_front();
        }
    }

    fn take_store(&self) -> Option<Store> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put_back(&self, store: Store) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.len() < KEPT_STORES {
            stores.push(store);
        }
    }
}
