//! Supervising one job from start to end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use tidegate_memory::{Host, process_status};
use tidegate_runs::{Metric, Outcome, Started, Status, Summary, write_beside};

use crate::attend::{Attend, Parts};
use crate::child::{self, Child};
use crate::confine::Confinement;
use crate::devices::DeviceWatch;
use crate::ended::Ended;
use crate::environment::{Environment, first_line};
use crate::error::{Error, Result};
use crate::event::{EncodedColumn, Event};
use crate::evidence::{Counters, KernelWatch, limits};
use crate::identity::{boot_id, process_ref, this_process};
use crate::job::{Job, OnSignal, RecordedRun, Update};
use crate::plan::Plan;
use crate::queue::{Item, Queue};
use crate::recorder::{Recorder, describe};
use crate::sampler::Sampler;
use crate::signals::{PASSED_ON, STOPS, Signals};
use crate::stacks::StackWatch;
use crate::why::{Facts, Refused};
use crate::{oom_score, recorder};

/// Stack of the attending thread: it only reads small files and lines.
const STACK: usize = 256 * 1024;

/// Starts the job, attends it to its end, and leaves nothing behind.
///
/// The caller's thread hears the updates and writes the run store, and may be as slow as it likes; another
/// thread attends the worker. While this runs, SIGINT, SIGTERM and SIGHUP to this process stop the worker:
/// the first asks it to save and end (SIGTERM, then SIGKILL after the grace), the second kills it.
///
/// An error means that there was no worker; everything that happens to a worker is in [`Ended`]. Either
/// way a recorded run is closed.
pub fn supervise(host: &Host, job: Job<'_>, on_event: &mut dyn FnMut(Update<'_>)) -> Result<Ended> {
    let run = job.run;
    let ended = start_and_attend(host, &job, on_event);
    let Some(run) = run else { return ended };
    if let Err(Error::Spawn { program, source }) = &ended {
        let mut trouble = |text| on_event(Item::warning(text).update());
        Recorder::open(Some(run), |_| {}).facts(&facts_of_none(&job, program, source), &mut trouble);
        if let Err(error) = write_environment(host, &job, run) {
            trouble(describe(&error));
        }
    }
    let outcome = match &ended {
        Ok(ended) => ended.outcome(),
        Err(error) => Outcome {
            error: Some(describe(error)),
            hint: error.hint(),
            ..Outcome::new(Status::Failed)
        },
    };
    if let Err(error) = run.store.finish(run.id, &outcome) {
        on_event(Item::warning(describe(&error)).update());
    }
    ended
}

fn start_and_attend(host: &Host, job: &Job<'_>, on_event: &mut dyn FnMut(Update<'_>)) -> Result<Ended> {
    // Before the worker exists, so that no Ctrl-C is lost.
    let signals = Signals::install(match job.on_signal {
        OnSignal::Stop => STOPS,
        OnSignal::PassOn => PASSED_ON,
    })?;
    let _protection = oom_score::protect();
    let mut confinement = match job.confine {
        // A cgroup without a limit counts for a foreign command what nobody else would.
        true if job.limit_bytes.is_some() || job.on_signal == OnSignal::PassOn => {
            Confinement::create(host, &group_id(job), job.limit_bytes)
        }
        true => Confinement::Watched {
            why: "no limit was asked for".into(),
        },
        false => Confinement::Watched {
            why: "no cgroup was wanted".into(),
        },
    };
    // Of a foreign command the kernel may take one worker and leave the rest, as it would without us.
    if job.on_signal == OnSignal::Stop {
        confinement.die_together();
    }
    let counters = Counters::before(host, confinement.cgroup());
    let kernel = KernelWatch::begin();
    let queue = Queue::default();
    let resident_floor =
        process_status(host, std::process::id().cast_signed()).and_then(|memory| memory.peak_resident);

    let mut child = child::spawn(job, confinement.group().map(|group| group.procs()))?;
    if let Some(error) = child.join_error.take() {
        confinement.fall_back(format!("the worker could not join its cgroup: {error}"));
    }
    queue.push(Item::Started {
        pid: child.pid,
        run: job.run.map(|run| run.id.into()),
        containment: confinement.describe(),
        cgroup: confinement.cgroup().map(Into::into),
    });
    let started = started(host, &child, &confinement);
    let recorder = Recorder::open(job.run, |text| queue.push(Item::warning(text)));
    let sampler = Sampler::new(host, child.pid, job.limit_bytes);
    let pid = child.pid;
    let facts = facts_at_start(job, &child, &confinement);
    recorder.facts(&facts, |text| queue.push(Item::warning(text)));
    let stacks = StackWatch::default();
    let limit = job.limit_bytes;
    let stacks_path = job
        .run
        .filter(|_| job.stacks)
        .map(|run| run.store.run_dir(run.id).stacks());
    let start = sampler.start;
    let devices = DeviceWatch::start(host, job, start);
    let attend = Attend::new(
        job,
        Parts {
            child,
            confinement: &mut confinement,
            signals,
            queue: &queue,
            recorder,
            sampler,
            resident_floor,
            host,
            facts,
            counters,
            kernel,
            stacks: &stacks,
            devices,
        },
    );

    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("attend".into())
            .stack_size(STACK);
        let attending = thread.spawn_scoped(scope, || {
            // Also when the thread panics: the caller must not wait for a queue that nobody fills.
            let _close = OnDrop(|| {
                stacks.end();
                queue.close();
            });
            attend.run()
        });
        if let Some(path) = stacks_path {
            let thread = std::thread::Builder::new().name("stacks".into());
            // Without it, nobody knows where the code was; that is no reason not to run it.
            let _ = thread.spawn_scoped(scope, || stacks.run(host, path, start, limit));
        }
        let attending = match attending {
            Ok(attending) => attending,
            Err(source) => {
                abandon_child(pid);
                return Err(Error::Os {
                    action: "start a thread",
                    source,
                });
            }
        };
        // A caller that panics must not leave a worker behind.
        let abandon = OnDrop(|| queue.abandon());
        let mut record = StoreWriter {
            host,
            job,
            run: job.run,
            started,
            held: Vec::new(),
            plan: None,
            failed: false,
        };
        while let Some(item) = queue.pop() {
            if let Some(trouble) = record.write(&item) {
                on_event(Item::warning(trouble).update());
            }
            on_event(item.update());
        }
        if let Some(trouble) = record.write_held() {
            on_event(Item::warning(trouble).update());
        }
        std::mem::forget(abandon);
        attending.join().map_err(|_| {
            abandon_child(pid);
            Error::Os {
                action: "attend the worker",
                source: std::io::Error::other("a bug in the supervisor"),
            }
        })
    })
}

fn words(job: &Job<'_>) -> Vec<String> {
    let words = std::iter::once(job.program.as_os_str()).chain(job.args.iter().map(|word| word.as_os_str()));
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// All that there is to know of a command that could not be started.
fn facts_of_none(job: &Job<'_>, program: &Path, source: &std::io::Error) -> Facts {
    let interpreter = match source.raw_os_error() {
        Some(libc::ENOENT) => interpreter_of(program),
        _ => None,
    };
    Facts {
        command: words(job),
        folder: std::env::current_dir().unwrap_or_default(),
        refused: Some(Refused {
            interpreter: interpreter.is_some(),
            file: interpreter.unwrap_or_else(|| program.into()),
            errno: source.raw_os_error(),
        }),
        ..Facts::default()
    }
}

/// What the first line of a script that is there says that it is to be run by.
fn interpreter_of(program: &Path) -> Option<PathBuf> {
    // Without a slash it was looked for on the PATH.
    program.to_str().filter(|program| program.contains('/'))?;
    Some(first_line(program)?.split_whitespace().next()?.into())
}

/// What is known at once, for a supervisor that is killed itself.
fn facts_at_start(job: &Job<'_>, child: &Child, confinement: &Confinement) -> Facts {
    Facts {
        command: words(job),
        folder: std::env::current_dir().unwrap_or_default(),
        pid: Some(child.pid),
        limit: job.limit_bytes,
        containment: confinement.describe(),
        // Where errors go to a terminal, both are recorded as one.
        streams_apart: !child.is_one_stream
            && child
                .terminal
                .as_ref()
                .is_none_or(|terminal| !terminal.streams[2]),
        limits: limits(child.pid),
        ..Facts::default()
    }
}

/// The name of the cgroup: the run's id, or something unique for a job without one.
fn group_id(job: &Job<'_>) -> String {
    static UNRECORDED: AtomicU32 = AtomicU32::new(0);
    match job.run {
        Some(run) => run.id.to_string(),
        None => format!(
            "p{}-{}",
            std::process::id(),
            UNRECORDED.fetch_add(1, Ordering::Relaxed)
        ),
    }
}

fn started(host: &Host, child: &Child, confinement: &Confinement) -> Option<Started> {
    Some(Started {
        supervisor: this_process(host)?,
        worker: process_ref(host, child.pid)?,
        containment: confinement.describe(),
        cgroup: confinement.cgroup().map(Into::into),
        boot_id: boot_id(),
    })
}

/// The last resort when the attending thread could not do its work.
fn abandon_child(pid: i32) {
    // SAFETY: our own child, not waited for by anyone else; waiting after SIGKILL to it.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Writes what the store wants to know, on the caller's thread: a locked database may make a command
/// wait, but not the thread that holds the line.
struct StoreWriter<'a> {
    host: &'a Host,
    job: &'a Job<'a>,
    run: Option<RecordedRun<'a>>,
    started: Option<Started>,
    /// What the worker's parts held at their peak, as far as it was told.
    held: Vec<(String, u64)>,
    plan: Option<Box<Plan>>,
    failed: bool,
}

impl StoreWriter<'_> {
    /// Says the first trouble, then stays quiet: a store that cannot be written must not end a run.
    fn write(&mut self, item: &Item) -> Option<String> {
        let RecordedRun { store, id } = self.run?;
        let written = match item {
            Item::Started { .. } => {
                let started = self.started.take();
                let told = started.map_or(Ok(()), |started| store.started(id, &started));
                told.and_then(|()| write_environment(self.host, self.job, RecordedRun { store, id }))
            }
            Item::Event(Event::Plan(plan)) => {
                let summary = Summary {
                    model: plan.model.clone(),
                    target: plan.target.clone(),
                    rows: plan.rows,
                    data_bytes: plan.data_bytes,
                    needs_bytes: Some(plan.needs),
                };
                self.plan = Some(plan.clone());
                store
                    .update(id, &summary)
                    .and_then(|()| store.planned(id, &plan.holders))
                    .and_then(|()| self.write_plan())
            }
            Item::Event(Event::Encoding { columns, shape }) => {
                let encoding = Encoding { columns, shape };
                write_json(&store.run_dir(id).encoding(), &encoding)
            }
            Item::Event(Event::Times(times)) => {
                if let Some(plan) = &mut self.plan {
                    plan.times = Some(times.clone());
                }
                self.write_plan()
            }
            Item::Event(Event::Done(done)) => {
                let (model, rows, data_bytes) = (done.model.clone(), done.rows, done.data_bytes);
                store.update(
                    id,
                    &Summary {
                        model,
                        rows,
                        data_bytes,
                        ..Summary::default()
                    },
                )
            }
            Item::Event(Event::Metric {
                epoch,
                step,
                name,
                value,
            }) => {
                let (name, value) = (name.clone(), *value);
                store.metric(
                    id,
                    &Metric {
                        epoch: *epoch,
                        step: *step,
                        name,
                        value,
                    },
                )
            }
            Item::Event(Event::Ledger { holders, .. }) => {
                self.held = holders
                    .iter()
                    .map(|(name, _, at_peak)| (name.clone(), *at_peak))
                    .collect();
                Ok(())
            }
            _ => Ok(()),
        };
        self.trouble(written)
    }

    /// The whole plan as a file of the run, in the place of an earlier one.
    fn write_plan(&self) -> tidegate_runs::Result<()> {
        let (Some(RecordedRun { store, id }), Some(plan)) = (self.run, &self.plan) else {
            return Ok(());
        };
        write_json(&store.run_dir(id).plan(), plan)
    }

    /// At the end: the account is told many times a second, and only its last state says all.
    fn write_held(&mut self) -> Option<String> {
        let RecordedRun { store, id } = self.run?;
        let written = store.held(id, &self.held);
        self.trouble(written)
    }

    fn trouble(&mut self, written: tidegate_runs::Result<()>) -> Option<String> {
        let error = written.err()?;
        let first = !std::mem::replace(&mut self.failed, true);
        first.then(|| recorder::describe(&error))
    }
}

/// What every column of a table becomes, as a file of the run has it.
#[derive(Serialize)]
struct Encoding<'a> {
    columns: &'a [EncodedColumn],
    shape: &'a str,
}

fn write_environment(host: &Host, job: &Job<'_>, run: RecordedRun<'_>) -> tidegate_runs::Result<()> {
    let path = run.store.run_dir(run.id).environment();
    write_json(&path, &Environment::of(host, job))
}

fn write_json(path: &Path, value: &impl Serialize) -> tidegate_runs::Result<()> {
    let text = serde_json::to_vec_pretty(value).expect("plain data serializes");
    write_beside(path, &text)
}
