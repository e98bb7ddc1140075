//! The thread that attends the worker: reads what it says, looks at its memory, passes signals on, and
//! sees it out. It waits for nobody without a bound.

mod line;
mod see_out;

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use tidegate_memory::Host;

use crate::child::Child;
use crate::confine::{Confinement, Group};
use crate::devices::DeviceWatch;
use crate::ended::{Ended, Exit, OverLine, signal_name};
use crate::event::{Done, Event, Failure, MemoryTaken, WIRE_VERSION};
use crate::evidence::{Counters, KernelWatch, Limits, Modules, Notebooks, Stillness};
use crate::job::{Job, OnSignal, Output, StopReason};
use crate::pipes::{Pipes, Source};
use crate::plain::dressed;
use crate::queue::{Item, Queue};
use crate::recorder::Recorder;
use crate::sampler::{Look, Sampler};
use crate::signals::{Came, Signals};
use crate::stacks::StackWatch;
use crate::why::{EndedChild, Facts, SentSignal, SignalReason};
use crate::wire::Line;

/// The longest wait between two checks of clocks, signals and the caller.
const TICK: Duration = Duration::from_millis(100);
/// The first looks at a job are this far apart.
const YOUNG: Duration = Duration::from_millis(2);
/// What Ctrl-C and Ctrl-Z are on their way to a terminal.
const CTRL_C: u8 = 3;
const CTRL_Z: u8 = 26;
/// Signals that are remembered one by one.
const MOST_SIGNALS: usize = 50;
/// How long a killed worker has to go.
const AFTER_KILL: Duration = Duration::from_secs(10);
/// Looking may take at most this share of the time (1/50) while memory moves, and this one while nothing does; it is at
/// least done this often.
const SAMPLE_COST: u32 = 50;
const SAMPLE_COST_STILL: u32 = 300;
const SAMPLE_SLOWEST: Duration = Duration::from_secs(2);

/// What a wait is ended by, beside something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heeds {
    /// Signals, and the end of the worker. It stays over once it is: then it would be no wait at all.
    All,
    Signals,
    Nothing,
}

/// What has become of the worker so far.
#[derive(Default)]
struct Story {
    hello: bool,
    stopped_by: Option<StopReason>,
    /// When patience ends and the worker is killed.
    kill_at: Option<Instant>,
    killed_at: Option<Instant>,
    over_line: Option<OverLine>,
    stopped: Option<bool>,
    taken: Option<MemoryTaken>,
    failed: Option<Failure>,
    done: Option<Done>,
}

pub(crate) struct Attend<'a> {
    host: &'a Host,
    child: Child,
    confinement: &'a mut Confinement,
    signals: Signals,
    queue: &'a Queue,
    recorder: Recorder,
    sampler: Sampler<'a>,
    pipes: Pipes,
    story: Story,
    speaks: bool,
    limit: Option<u64>,
    grace: Duration,
    sample_every: Duration,
    on_signal: OnSignal,
    /// To be sent when the line is near, until it was.
    before_kill: Option<i32>,
    near: bool,
    passes_through: bool,
    /// Ctrl-Z was typed.
    suspends: bool,
    /// Whether the job has said something since the last look.
    spoke: bool,
    facts: Facts,
    counters: Counters,
    kernel: KernelWatch,
    stillness: Stillness,
    limits: Limits,
    notebooks: Notebooks,
    modules: Modules,
    stacks: &'a StackWatch,
    devices: DeviceWatch,
    /// Our own resident peak when the worker was forked: the kernel counts the worker's from there.
    resident_floor: Option<u64>,
}

/// What [`Attend::new`] takes over.
pub(crate) struct Parts<'a> {
    pub(crate) host: &'a Host,
    pub(crate) child: Child,
    pub(crate) confinement: &'a mut Confinement,
    pub(crate) signals: Signals,
    pub(crate) queue: &'a Queue,
    pub(crate) recorder: Recorder,
    pub(crate) sampler: Sampler<'a>,
    pub(crate) resident_floor: Option<u64>,
    pub(crate) facts: Facts,
    pub(crate) counters: Counters,
    pub(crate) kernel: KernelWatch,
    pub(crate) stacks: &'a StackWatch,
    pub(crate) devices: DeviceWatch,
}

impl<'a> Attend<'a> {
    pub(crate) fn new(job: &Job<'_>, mut parts: Parts<'a>) -> Attend<'a> {
        let pipes = Pipes::of(&mut parts.child, job);
        Attend {
            host: parts.host,
            child: parts.child,
            confinement: parts.confinement,
            signals: parts.signals,
            queue: parts.queue,
            recorder: parts.recorder,
            sampler: parts.sampler,
            pipes,
            story: Story::default(),
            speaks: job.events,
            limit: job.limit_bytes,
            grace: job.grace,
            sample_every: job.sample_every.max(Duration::from_millis(1)),
            resident_floor: parts.resident_floor,
            on_signal: job.on_signal,
            before_kill: job.before_kill,
            near: false,
            passes_through: job.output == Output::Through,
            suspends: false,
            spoke: false,
            facts: parts.facts,
            counters: parts.counters,
            kernel: parts.kernel,
            stillness: Stillness::default(),
            limits: Limits::default(),
            notebooks: Notebooks::default(),
            modules: Modules::default(),
            stacks: parts.stacks,
            devices: parts.devices,
        }
    }

    /// From the start of the worker to the removal of its cgroup.
    pub(crate) fn run(mut self) -> Ended {
        let (mut next_sample, mut next_still) = (Instant::now(), Instant::now());
        while !self.child.is_over() {
            let now = Instant::now();
            if now >= next_still || (now >= next_sample && self.sampler.has_moved(self.confinement.group())) {
                self.look();
                let cost = now.elapsed();
                // What is over soon is looked at more often.
                let age = self.sampler.elapsed();
                let every = self.sample_every.min(age / 4 + YOUNG);
                let pause = |share| match age < self.sample_every * 4 {
                    true => every,
                    false => every.max((cost * share).min(SAMPLE_SLOWEST)),
                };
                (next_sample, next_still) = (now + pause(SAMPLE_COST), now + pause(SAMPLE_COST_STILL));
            } else {
                // A look at everything may be far off; the line may not.
                if let Some(used) = self.confinement.group().and_then(Group::usage) {
                    self.look_at_the_line(Some(used));
                }
                if now >= next_sample {
                    next_sample = now + self.sample_every;
                }
            }
            self.check_signals();
            if self.queue.is_abandoned() {
                self.stop(StopReason::ParentError, Duration::ZERO);
            }
            if self.story.kill_at.is_some_and(|at| Instant::now() >= at) {
                self.kill();
            }
            if self.story.killed_at.is_some_and(|at| at.elapsed() >= AFTER_KILL) {
                break;
            }
            let until = self.story.kill_at.map_or(next_sample, |at| at.min(next_sample));
            let wait = until.saturating_duration_since(Instant::now()).min(TICK);
            self.wait(wait, Heeds::All);
            if std::mem::take(&mut self.suspends) {
                self.suspend_if_it_would_be();
            }
        }
        self.see_out()
    }

    /// Waits until something can be read, and reads it.
    fn wait(&mut self, timeout: Duration, heeds: Heeds) {
        let mut others = Vec::new();
        if heeds != Heeds::Nothing {
            others.push(self.signals.wake_fd().as_raw_fd());
        }
        if heeds == Heeds::All {
            others.extend(self.child.pidfd.as_ref().map(AsRawFd::as_raw_fd));
        }
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.wait(&others, timeout, |source, line| self.heard(source, line));
        self.pipes = pipes;
        let queue = self.queue;
        self.recorder.flush(|text| queue.push(Item::warning(text)));
    }

    fn heard(&mut self, source: Source, line: &Line<'_>) {
        self.spoke |= source != Source::Input;
        match source {
            // The job's own terminal makes a signal of it.
            Source::Input if line.bytes.contains(&CTRL_C) => {
                self.note_signal(libc::SIGINT, SignalReason::PassedOn);
            }
            Source::Input => self.suspends |= line.bytes.contains(&CTRL_Z),
            Source::Output(stream) if self.passes_through => {
                let queue = self.queue;
                let text = dressed(line.bytes);
                self.recorder
                    .log(stream, &text, |text| queue.push(Item::warning(text)));
            }
            Source::Output(stream) => {
                let queue = self.queue;
                self.recorder
                    .log(stream, line.bytes, |text| queue.push(Item::warning(text)));
                let mut text = String::from_utf8_lossy(line.bytes).into_owned();
                if line.dropped > 0 {
                    text.push_str(&format!(" … ({} bytes more)", line.dropped));
                }
                self.queue.push(Item::Output { stream, line: text });
            }
            Source::Events if line.bytes.is_empty() => {}
            Source::Events if line.dropped > 0 => {
                let length = line.bytes.len() as u64 + line.dropped;
                self.warn(format!("an event of {length} bytes is too long and was left out"));
            }
            Source::Events => match Event::parse(line.bytes) {
                Ok(event) => self.event(event),
                Err(error) => {
                    let start = String::from_utf8_lossy(&line.bytes[..line.bytes.len().min(60)]);
                    self.warn(format!(
                        "the worker sent a line that is no event ({error}): {start:?}"
                    ));
                }
            },
        }
    }

    fn event(&mut self, event: Event) {
        match &event {
            Event::Hello { version, .. } if *version == WIRE_VERSION => self.story.hello = true,
            Event::Hello { version, .. } => {
                let message =
                    format!("the worker speaks version {version} of the events, we speak {WIRE_VERSION}");
                self.refuse(message);
            }
            _ if !self.story.hello => self.refuse("the worker sent events before its hello".to_string()),
            Event::Done(done) => self.story.done = Some(done.clone()),
            Event::Failed(failure) => self.story.failed = Some(failure.clone()),
            Event::Stopped {
                checkpoint, reason, ..
            } => {
                self.story.stopped = Some(*checkpoint);
                self.story.taken.clone_from(reason);
            }
            _ => {}
        }
        if matches!(event, Event::Done(_) | Event::Failed(_) | Event::Stopped { .. }) {
            // It said its last word; hanging on the way out is no reason for us to hang.
            self.story.kill_at.get_or_insert(Instant::now() + self.grace);
        }
        self.sampler.heard(&event);
        if let Event::Ledger { budget, holders, .. } = &event {
            let used: Vec<(String, u64)> = holders
                .iter()
                .map(|(name, used, _)| (name.clone(), *used))
                .collect();
            let queue = self.queue;
            self.recorder
                .holders(self.sampler.time_ms(), &used, *budget, |text| {
                    queue.push(Item::warning(text))
                });
        }
        if event != Event::Unknown {
            self.queue.push(Item::Event(event));
        }
    }

    fn refuse(&mut self, message: String) {
        if self.story.stopped_by == Some(StopReason::ParentError) {
            return;
        }
        let hint = Some("worker and supervisor must be the same build of tidegate".to_string());
        self.story.failed = Some(Failure {
            message,
            hint,
            usage: false,
            least: None,
        });
        self.stop(StopReason::ParentError, Duration::from_secs(1));
    }

    fn warn(&self, text: String) {
        self.queue.push(Item::warning(text));
    }

    fn look(&mut self) {
        let Look { record, processes } = self.sampler.sample(self.confinement.group());
        let queue = self.queue;
        let mut trouble = |text| queue.push(Item::warning(text));
        self.recorder.sample(&record, &mut trouble);
        self.recorder.processes(&processes, &mut trouble);
        self.stacks.follow(self.sampler.family.living());
        self.devices.follow(self.sampler.family.living());
        queue.push(Item::Sample(Box::new(record)));
        self.look_at_the_line(record.cgroup_usage.or(record.proportional).or(record.resident));
        let spoke = std::mem::take(&mut self.spoke);
        if let Some(child) = self.stillness.look(&record, spoke, &self.sampler.family.ended) {
            self.warn(hangs(&child));
        }
        if self.stillness.is_still(record.time_ms) {
            let living = self.sampler.family.living().map(|(pid, _)| pid);
            self.stillness.ask(self.host, self.child.pid, living);
        }
        self.limits.look(self.sampler.family.living().map(|(pid, _)| pid));
        self.modules.look(self.sampler.family.living());
        if let Some(found) = self.notebooks.look(self.sampler.family.living()) {
            // At once: the end may not leave us the time.
            self.facts.notebooks = found.to_vec();
            self.recorder.facts(&self.facts, trouble);
        }
        self.hold_to_the_line(&record);
    }

    fn check_signals(&mut self) {
        let came = self.signals.take();
        if self.on_signal == OnSignal::PassOn {
            came.into_iter().for_each(|came| self.pass_on(came));
            return;
        }
        for came in &came {
            self.note_signal(came.signal, SignalReason::PassedOn);
        }
        let reason = |signal| match signal {
            libc::SIGINT => StopReason::Interrupt,
            _ => StopReason::Terminate,
        };
        let reasons = came
            .into_iter()
            .flat_map(|came| std::iter::repeat_n(reason(came.signal), came.times.min(2) as usize));
        for reason in reasons {
            let second = matches!(
                self.story.stopped_by,
                Some(StopReason::Interrupt | StopReason::Terminate)
            );
            self.queue.push(Item::Stopping { second });
            if second {
                self.kill();
            } else {
                self.stop(reason, self.grace);
            }
        }
    }

    /// Does with a signal what it would have done to the job without us.
    fn pass_on(&mut self, came: Came) {
        match (came.signal, &mut self.child.terminal) {
            (libc::SIGWINCH, Some(terminal)) => terminal.follow_size(),
            (libc::SIGWINCH, None) => self.child.signal(libc::SIGWINCH, true),
            (libc::SIGCONT, terminal) => {
                if let Some(terminal) = terminal {
                    terminal.take_over();
                    self.pipes.listen(terminal.is_ours());
                }
                self.child.signal(libc::SIGCONT, true);
            }
            (libc::SIGTSTP, None) => self.suspend(libc::SIGTSTP),
            (libc::SIGTSTP, Some(_)) => self.suspend(libc::SIGSTOP),
            (signal, _) => {
                for _ in 0..came.times {
                    self.child.signal(signal, came.typed);
                    self.note_signal(signal, SignalReason::PassedOn);
                }
            }
        }
    }

    /// Ctrl-Z reaches the job by its own terminal, where the kernel stops nobody: whoever could continue it is outside.
    fn suspend_if_it_would_be(&mut self) {
        let group = self.child.pid;
        let terminal = self.child.terminal.as_ref();
        if terminal.is_some_and(|terminal| terminal.makes_signals_for(group))
            && !self.child.minds_suspension()
        {
            self.suspend(libc::SIGSTOP);
        }
    }

    /// Stops the job, and then this process, until somebody continues it.
    fn suspend(&mut self, signal: i32) {
        self.child.signal(signal, true);
        if let Some(terminal) = &mut self.child.terminal {
            terminal.give_back();
        }
        self.pipes.listen(false);
        // SAFETY: stops this process. Whoever continues it sends SIGCONT, which is passed on like any other signal.
        unsafe { libc::raise(libc::SIGSTOP) };
    }

    fn note_signal(&mut self, signal: i32, why: SignalReason) {
        let time_ms = self.sampler.time_ms();
        let signals = &mut self.facts.signals;
        // The first ones and the last ones tell most.
        if signals.len() >= MOST_SIGNALS {
            signals.remove(MOST_SIGNALS / 2);
        }
        signals.push(SentSignal { time_ms, signal, why });
    }

    /// Asks the worker to end, and remembers when patience does.
    fn stop(&mut self, reason: StopReason, grace: Duration) {
        if self.story.stopped_by.is_some() {
            return;
        }
        self.story.stopped_by = Some(reason);
        let patience = Instant::now() + grace;
        self.story.kill_at = Some(self.story.kill_at.map_or(patience, |at| at.min(patience)));
        self.child.terminate();
    }

    fn kill(&mut self) {
        if self.story.killed_at.is_none() {
            self.story.killed_at = Some(Instant::now());
            self.story.kill_at = None;
            self.child.kill_group();
            if let Some(group) = self.confinement.group() {
                group.kill();
            }
        }
    }
}

fn hangs(child: &EndedChild) -> String {
    let how = match child.exit {
        Some(Exit::Signal(signal)) => format!("was ended by {}", signal_name(signal)),
        Some(Exit::Code(code)) => format!("ended with code {code}"),
        Some(Exit::Unknown) | None => "is gone".into(),
    };
    format!(
        "{} {} {how}, and nothing has moved since: its parent {} may be waiting for it forever",
        child.name, child.pid, child.parent
    )
}
