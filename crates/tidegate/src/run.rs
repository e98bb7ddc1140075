//! The verb `run`: any command, watched, contained if asked for, and explained when it is over.

use std::ffi::OsString;
use std::time::Duration;

use serde::Serialize;
use tidegate_memory::{Amount, Budget, resolve};
use tidegate_runs::{NewRun, Run};
use tidegate_watch::why::{SignalReason, Verdict};
use tidegate_watch::{
    Devices, Ended, Exit, Job, OnSignal, Output, RecordedRun, Update, boot_id, supervise, this_process,
};

use crate::why::judge_and_keep;
use crate::{Error, Result, Session};

/// The part of its usual size that a job should take in a further attempt: 0.5, 0.25, …
const SCALE: &str = "TIDEGATE_SCALE";

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    pub name: Option<String>,
    /// The line; without one nothing is contained.
    pub memory: Option<Amount>,
    /// A signal for the job to save itself near the line.
    pub before_kill: Option<i32>,
    /// Between asking a job over the line to end and killing it, where the kernel does not hold the line.
    pub grace: Duration,
    /// Further attempts for a job that died of memory.
    pub retry: u32,
}

/// A command that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct Ran {
    pub run: Run,
    pub verdict: Verdict,
    #[serde(skip)]
    pub ended: Ended,
    /// A signal to stop was passed on to it.
    #[serde(skip)]
    pub stopped: bool,
}

impl Ran {
    pub fn exit(&self) -> Exit {
        self.ended.exit
    }
}

/// Runs a command to its end, and again if it died of memory and may. `watch` hears what happens on the way, and of every
/// attempt that is followed by another one. The last attempt is returned.
pub fn run(
    session: &Session,
    command: &Command,
    watch: &mut dyn FnMut(Update),
    again: &mut dyn FnMut(&Ran, f64),
) -> Result<Ran> {
    if command.words.is_empty() {
        return Err(Error::Usage {
            what: "there is no command to run".into(),
            hint: "tidegate run -- python train.py".into(),
        });
    }
    let budget = command
        .memory
        .map(|memory| resolve(&session.host, Some(memory)))
        .transpose()?;
    // SAFETY: asks for a position, which a pipe or a terminal has not.
    let input_start = unsafe { libc::lseek(0, 0, libc::SEEK_CUR) };
    let mut first: Option<String> = None;
    let mut attempt = 1;
    loop {
        let scale = 0.5f64.powi(attempt as i32 - 1);
        let family = first.clone().map(|first| (first, attempt));
        let ran = once(session, command, budget.as_ref(), family, scale, watch)?;
        if attempt > command.retry || !died_of_memory(&ran) {
            return Ok(ran);
        }
        // Each attempt reads its input from where the first one did. Of a pipe it gets what is left.
        if input_start >= 0 {
            // SAFETY: moves the position of our own standard input, which the command had.
            unsafe { libc::lseek(0, input_start, libc::SEEK_SET) };
        }
        first.get_or_insert_with(|| ran.run.id.clone());
        attempt += 1;
        again(&ran, scale / 2.0);
    }
}

/// Whether it failed for want of memory, and nobody asked it to stop.
fn died_of_memory(ran: &Ran) -> bool {
    let failed = ran.exit() != Exit::Code(0);
    failed && !ran.stopped && ran.verdict.cause.is_memory()
}

fn once(
    session: &Session,
    command: &Command,
    budget: Option<&Budget>,
    family: Option<(String, u32)>,
    scale: f64,
    watch: &mut dyn FnMut(Update),
) -> Result<Ran> {
    let words = command
        .words
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let run = session.store.create(&NewRun {
        kind: "run".into(),
        name: command.name.clone(),
        budget_bytes: budget.map(|budget| budget.bytes),
        bound: budget.map(|budget| budget.bound.name.clone()),
        command: words.collect(),
        supervisor: this_process(&session.host),
        boot_id: boot_id(),
        family,
        ..NewRun::default()
    })?;
    let mut job = Job::new(&command.words[0], &command.words[1..]);
    job.events = false;
    job.stdin = true;
    job.output = Output::Through;
    job.on_signal = OnSignal::PassOn;
    job.limit_bytes = budget.map(|budget| budget.bytes);
    job.before_kill = command.before_kill;
    job.stacks = true;
    job.devices = Devices::Watched;
    job.grace = command.grace;
    job.run = Some(RecordedRun {
        store: &session.store,
        id: &run.id,
    });
    if scale < 1.0 {
        job.envs.push((SCALE.into(), scale.to_string().into()));
    }
    let ended = supervise(&session.host, job, watch)?;
    let run = session.store.get(&run.id)?;
    let explanation = judge_and_keep(session, &run, Some(&ended.facts))?;
    let stops = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    let signals = &explanation.case.facts.signals;
    let stopped = signals
        .iter()
        .any(|sent| sent.why == SignalReason::PassedOn && stops.contains(&sent.signal));
    Ok(Ran {
        run: session.store.get(&run.id)?,
        verdict: explanation.verdict,
        ended,
        stopped,
    })
}
