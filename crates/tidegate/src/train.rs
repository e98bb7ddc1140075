//! The verb `train`: a run is created, its worker supervised, its outcome returned.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidegate_memory::{Amount, Budget, format_bytes, resolve};
use tidegate_runs::{NewRun, Outcome, Run, Status};
use tidegate_train::{Report, present, sweep};
use tidegate_watch::{Ended, RecordedRun, Update, boot_id, supervise, this_process};

use crate::job::{check_path, is_url};
use crate::why::judge_and_keep;
use crate::worker::{Task, floor};
use crate::{Error, Job, Result, Session};

/// A training that is done.
#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    pub run: Run,
    pub budget: Budget,
    pub report: Report,
    pub model: PathBuf,
    pub containment: String,
    pub seconds: f64,
}

/// Trains `job` as a new run. `watch` hears everything on the way.
pub fn train(session: &Session, job: &Job, watch: &mut dyn FnMut(&Budget, Update)) -> Result<Trained> {
    job.check()?;
    start(session, job, None, watch)
}

/// Takes up the training of a run that stopped with a checkpoint, as a new run with the same job, within another budget
/// where that is asked for.
pub fn resume(
    session: &Session,
    reference: &str,
    memory: Option<Amount>,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Trained> {
    let run = session.store.find(reference)?;
    let dir = session.store.run_dir(&run.id);
    let mut job = Job::read(&dir.job())?;
    job.memory = memory.or(job.memory);
    if !run.status.is_over() || run.status == Status::Done {
        return Err(Error::Usage {
            what: format!("run {} is {}", run.id, run.status.as_str()),
            hint: "a run that was stopped or failed can be taken up".into(),
        });
    }
    if !present(&dir.checkpoint()).exists() {
        return Err(Error::NoCheckpoint { run: run.id });
    }
    job.check()?;
    start(session, &job, Some(dir.checkpoint()), watch)
}

fn start(
    session: &Session,
    job: &Job,
    resume: Option<PathBuf>,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Trained> {
    let budget = resolve(&session.host, job.memory)?;
    let mut job = job.clone();
    // A run is told from anywhere, so its data is named from the root.
    for path in job.paths_mut() {
        if !is_url(path) {
            *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        }
        check_path(path)?;
    }
    let run = session.store.create(&NewRun {
        kind: "train".into(),
        name: job.name.clone(),
        model: Some(job.model.kind.as_str().into()),
        data: Some(job.data.name()),
        target: Some(job.data.target.clone()).filter(|target| !target.is_empty()),
        budget_bytes: Some(budget.bytes),
        bound: Some(budget.bound.name.clone()),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        supervisor: this_process(&session.host),
        boot_id: boot_id(),
        family: None,
    })?;
    let dir = session.store.run_dir(&run.id);
    let started = std::fs::write(dir.job(), job.to_toml())
        .and_then(|()| match &resume {
            Some(checkpoint) => copy_files(checkpoint, &dir.checkpoint()),
            None => Ok(()),
        })
        .map_err(|source| Error::Io {
            path: dir.path().into(),
            what: "cannot be written",
            source,
        });
    if let Err(error) = started {
        give_up(session, &run, &error);
        return Err(error);
    }
    let task = Task::Train {
        job: dir.job(),
        budget: budget.bytes,
        checkpoint: dir.checkpoint(),
        model: dir.model(),
        resume: resume.is_some(),
        packs: session.packs(),
    };
    let mut child = task.child().inspect_err(|error| give_up(session, &run, error))?;
    child.limit_bytes = Some(floor(budget.bytes));
    child.run = Some(RecordedRun {
        store: &session.store,
        id: &run.id,
    });
    let ended = supervise(&session.host, child, &mut |update| watch(&budget, update))?;
    for folder in [dir.checkpoint(), dir.model()] {
        sweep(&folder);
    }
    let run = measured(session.store.get(&run.id)?, &ended);
    match (&ended.done, ended.exit_code()) {
        (Some(_), 0) => {
            let report = Report::load(&dir.model())?;
            let seconds = ended.duration.as_secs_f64();
            Ok(Trained {
                run,
                budget,
                report,
                model: dir.model(),
                containment: ended.containment,
                seconds,
            })
        }
        _ => {
            // Why it ended is easiest told now; that it cannot be is no reason not to say how.
            let _ = judge_and_keep(session, &run, Some(&ended.facts));
            Err(unfinished(&ended, Some(run.id)))
        }
    }
}

/// The run with what was measured, which the store may lack where the disk is full.
fn measured(run: Run, ended: &Ended) -> Run {
    Run {
        peak_bytes: ended.peak,
        peak_source: ended.peak_source.map(str::to_string),
        resident_peak_bytes: ended.resident_peak,
        oom_kills: ended.oom_kills,
        ..run
    }
}

/// Copies a checkpoint into a run of its own, so that the run can be taken up however early it is stopped.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    // Under another name until it is whole.
    let beside = to.with_extension("new");
    std::fs::create_dir_all(&beside)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let copy = beside.join(entry.file_name());
        std::fs::copy(entry.path(), &copy)?;
        std::fs::File::open(&copy)?.sync_all()?;
    }
    std::fs::rename(&beside, to)
}

/// Marks a run failed that never got a worker.
fn give_up(session: &Session, run: &Run, error: &Error) {
    let outcome = Outcome {
        error: Some(error.message()),
        hint: error.hint(),
        exit_code: Some(error.exit_code()),
        ..Outcome::new(Status::Failed)
    };
    // The first error is the one worth telling.
    let _ = session.store.finish(&run.id, &outcome);
}

/// The error of a worker that did not finish.
pub(crate) fn unfinished(ended: &Ended, run: Option<String>) -> Error {
    let hint = match (&ended.failed, ended.stopped, &run) {
        (Some(failure), ..) => failure.hint.clone(),
        (None, Some(true), Some(run)) => {
            let enough = ended.taken.as_ref().and_then(|taken| taken.enough);
            let memory = enough.map_or(String::new(), |bytes| {
                format!(" --memory {}", format_bytes(bytes).replace(' ', ""))
            });
            Some(format!("go on with `tidegate resume {run}{memory}`"))
        }
        (None, _, Some(run)) => Some(format!("see `tidegate show {run}`")),
        (None, _, None) => None,
    };
    Error::Ended {
        message: ended.explain(),
        hint,
        exit_code: ended.exit_code(),
        run,
        least: ended.failed.as_ref().and_then(|failure| failure.least),
    }
}
