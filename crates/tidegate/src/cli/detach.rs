//! `--detach`: a training that goes on by itself, in a session of its own, once it is under way.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tidegate::{Error, Result, Trained};
use tidegate_memory::Budget;
use tidegate_runs::Run;
use tidegate_watch::{Event, Update};

use super::{open, print_json, print_problem, say};

/// What a training that is on its own says before it falls silent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// It is this run.
    Run(String),
    /// It has come to nothing.
    Failed {
        message: String,
        hint: Option<String>,
        exit_code: i32,
        run: Option<String>,
        least: Option<u64>,
    },
}

/// A run is there in a moment, but for a machine that has none to spare.
const UNTIL_THERE: Duration = Duration::from_secs(60);
/// What is wrong with a job shows soon. What takes longer to plan is under way, too.
const UNTIL_PLANNED: Duration = Duration::from_secs(3);

/// What was started.
#[derive(Serialize)]
struct Detached {
    run: Run,
}

/// Starts a training on its own, and waits until it has a plan or has failed.
pub(super) fn detach(
    home: &Path,
    json: bool,
    training: impl FnOnce(&mut dyn FnMut(&Budget, Update)) -> Result<Trained>,
) -> Result<()> {
    let failed = |source| Error::Io {
        path: "tidegate".into(),
        what: "cannot be started on its own",
        source,
    };
    let (listen, speak) = io::pipe().map_err(failed)?;
    // SAFETY: no thread was started in this process, so that nothing is left half-done in its copy.
    match unsafe { libc::fork() } {
        0 => {
            drop(listen);
            std::process::exit(alone(speak, training));
        }
        -1 => return Err(failed(io::Error::last_os_error())),
        _ => drop(speak),
    }
    let started = hear(listen).and_then(|id| Ok(open(home)?.store.get(&id)?));
    match started {
        Ok(run) if json => print_json(&Detached { run }),
        Ok(run) => say!(
            "run {} goes on by itself: tidegate show {0} · tidegate stop {0}",
            run.id
        ),
        Err(error) => {
            if json {
                print_problem(&error);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The id of the run, once it is under way.
fn hear(pipe: PipeReader) -> Result<String> {
    let (sender, words) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(io::Result::ok) {
            let Ok(word) = serde_json::from_str::<Word>(&line) else {
                continue;
            };
            if sender.send(word).is_err() {
                return;
            }
        }
    });
    let (mut run, mut until) = (None, Instant::now() + UNTIL_THERE);
    loop {
        match words.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Word::Run(id)) => {
                run = Some(id);
                until = Instant::now() + UNTIL_PLANNED;
            }
            Ok(Word::Failed {
                message,
                hint,
                exit_code,
                run,
                least,
            }) => {
                return Err(Error::Ended {
                    message,
                    hint,
                    exit_code,
                    run,
                    least,
                });
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return run.ok_or_else(|| Error::Ended {
                    message: "the training did not begin".into(),
                    hint: Some("see `tidegate runs`, or start it without --detach".into()),
                    exit_code: 1,
                    run: None,
                    least: None,
                });
            }
        }
    }
}

/// Trains without a terminal, and is heard until the plan is made; the exit code.
fn alone(
    speak: PipeWriter,
    training: impl FnOnce(&mut dyn FnMut(&Budget, Update)) -> Result<Trained>,
) -> i32 {
    leave();
    let mut heard = Some(speak);
    let trained = training(&mut |_, update| match update {
        Update::Started { run: Some(id), .. } => tell(heard.as_mut(), &Word::Run(id.into())),
        // From here on it is a run like any other.
        Update::Event(Event::Plan(_) | Event::Stopped { .. } | Event::Done(_)) => heard = None,
        _ => {}
    });
    let Err(error) = trained else { return 0 };
    let run = match &error {
        Error::Ended { run, .. } => run.clone(),
        _ => None,
    };
    let word = Word::Failed {
        message: error.message(),
        hint: error.hint(),
        exit_code: error.exit_code(),
        least: error.least(),
        run,
    };
    tell(heard.as_mut(), &word);
    error.exit_code()
}

fn tell(pipe: Option<&mut PipeWriter>, word: &Word) {
    let Some(pipe) = pipe else { return };
    let mut line = serde_json::to_vec(word).expect("plain data serializes");
    line.push(b'\n');
    // Nobody may listen any more.
    let _ = pipe.write_all(&line);
}

/// A session of its own, away from the terminal and its signals, with nothing to read or write.
fn leave() {
    let nothing = File::options().read(true).write(true).open("/dev/null");
    // SAFETY: plain system calls of a process with one thread, on descriptors that stay open.
    unsafe {
        libc::setsid();
        // Who started it may have been in the background of a script, where Ctrl-C is ignored.
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
        if let Ok(nothing) = &nothing {
            for stream in 0..=2 {
                libc::dup2(nothing.as_raw_fd(), stream);
            }
        }
    }
}
