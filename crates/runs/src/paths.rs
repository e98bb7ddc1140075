//! Where a run keeps its files.

use std::path::{Path, PathBuf};

/// The folder of one run. It only knows names; nothing is created by asking for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    pub(crate) fn new(home: &Path, id: &str) -> RunDir {
        RunDir {
            path: home.join("runs").join(id),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked, fully resolved.
    pub fn job(&self) -> PathBuf {
        self.path.join("job.toml")
    }

    /// What was predicted of it, whole.
    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    /// What every column of a table becomes, and the shape of it all.
    pub fn encoding(&self) -> PathBuf {
        self.path.join("encoding.json")
    }

    /// What it was run with: versions, machine, variables.
    pub fn environment(&self) -> PathBuf {
        self.path.join("environment.json")
    }

    /// Standard output and standard error, time-stamped.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    /// The flight recorder.
    pub fn flight(&self) -> PathBuf {
        self.path.join("flight.bin")
    }

    /// The flight recorder of each process, and of each accelerator.
    pub fn processes(&self) -> PathBuf {
        self.path.join("processes.bin")
    }

    pub fn devices(&self) -> PathBuf {
        self.path.join("devices.bin")
    }

    /// Who held how much of the budget.
    pub fn holders(&self) -> PathBuf {
        self.path.join("holders.jsonl")
    }

    /// Where Python code was.
    pub fn stacks(&self) -> PathBuf {
        self.path.join("stacks.jsonl")
    }

    /// What the supervisor saw at the end.
    pub fn facts(&self) -> PathBuf {
        self.path.join("facts.json")
    }

    /// Weights, optimizer and cursor of an unfinished run.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint")
    }

    /// The trained model.
    pub fn model(&self) -> PathBuf {
        self.path.join("model")
    }

    /// Why it ended, as it was last told.
    pub fn why(&self) -> PathBuf {
        self.path.join("why.json")
    }

    /// How its model comes to its predictions, as it was last told.
    pub fn explained(&self) -> PathBuf {
        self.path.join("explained.json")
    }

    /// Contact sheets: samples as the model gets them, and its most confident mistakes.
    pub fn samples(&self) -> PathBuf {
        self.path.join("samples.png")
    }

    pub fn mistakes(&self) -> PathBuf {
        self.path.join("mistakes.png")
    }
}
