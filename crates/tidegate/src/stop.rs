//! The verb `stop`: asks a run that is under way to end, from outside.

use std::thread::sleep;
use std::time::Duration;

use tidegate_runs::{ProcessRef, Run};
use tidegate_watch::{boot_id, send_signal};

use crate::{Error, Result, Session};

/// After so long a worker that is killed is gone, or was asked again.
const BETWEEN: Duration = Duration::from_millis(250);
/// How often that is looked for.
const LOOKS: u32 = 20;

/// How a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowToStop {
    /// As by Ctrl-C: a training saves what it has.
    Ask,
    /// As by a second Ctrl-C: it ends at once. A foreign command is killed.
    Kill,
}

/// Ends a run, and gives it as it then stands. A request is passed on without waiting for what comes of it; whoever kills
/// waits until the run is over, but not for long.
pub fn stop(session: &Session, reference: &str, how: HowToStop) -> Result<Run> {
    let run = session.store.find(reference)?;
    let refuse = |what: String, hint: &str| {
        Err(Error::Usage {
            what,
            hint: hint.into(),
        })
    };
    if run.status.is_over() {
        let what = format!("run {} is {}", run.label(), run.status);
        return refuse(what, "only a run that is under way can be stopped");
    }
    // A number of a process means something only where it was given.
    if run.boot_id != boot_id() {
        let what = format!(
            "run {} is not one of this machine, or of this container",
            run.label()
        );
        return refuse(what, "stop it where it runs");
    }
    let Some(supervisor) = run.supervisor else {
        return refuse(format!("run {} is about to start", run.label()), "try again");
    };
    match how {
        HowToStop::Ask => signal(session, supervisor, libc::SIGINT)?,
        HowToStop::Kill => kill(session, &run, supervisor)?,
    }
    Ok(session.store.get(&run.id)?)
}

/// Of ours the supervisor kills at the second request; a foreign command may take no notice of any.
fn kill(session: &Session, run: &Run, supervisor: ProcessRef) -> Result<()> {
    match run.worker.filter(|_| run.kind != "train") {
        Some(command) => signal(session, command, libc::SIGKILL)?,
        None => {
            signal(session, supervisor, libc::SIGINT)?;
            // Two at once would count as one.
            sleep(BETWEEN);
            if !session.store.get(&run.id)?.status.is_over() {
                signal(session, supervisor, libc::SIGINT)?;
            }
        }
    }
    for _ in 0..LOOKS {
        if session.store.get(&run.id)?.status.is_over() {
            break;
        }
        sleep(BETWEEN);
    }
    Ok(())
}

fn signal(session: &Session, process: ProcessRef, signal: i32) -> Result<()> {
    // One that is gone by now has nothing left to be asked.
    let sent = send_signal(&session.host, process, signal);
    sent.map(drop).map_err(|source| Error::Io {
        path: format!("process {}", process.pid).into(),
        what: "cannot be stopped",
        source,
    })
}
