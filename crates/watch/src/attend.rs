//! The thread that attends the worker: reads what it says, looks at its memory, passes signals on, and
//! sees it out. It waits for nobody without a bound.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_runs::FlightRecord;

use crate::child::Child;
use crate::confine::{Confinement, Group};
use crate::devices::DeviceWatch;
use crate::ended::{Ended, Exit, OverLine, signal_name};
use crate::event::{Done, Event, Failure, WIRE_VERSION};
use crate::evidence::{Counters, KernelWatch, Limits, Modules, Notebooks, Stillness};
use crate::job::{Job, OnSignal, Output, StopReason};
use crate::pipes::{Pipes, Source};
use crate::plain::plain;
use crate::queue::{Item, Queue};
use crate::recorder::Recorder;
use crate::sampler::{Look, NEAR, Sampler};
use crate::signals::{Came, Signals};
use crate::stacks::StackWatch;
use crate::why::{EndedChild, Facts, SentSignal, SignalReason};
use crate::wire::Line;

/// The longest wait between two checks of clocks, signals and the caller.
const TICK: Duration = Duration::from_millis(100);
/// How long output may still come after the worker is over, from processes that it left behind.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a watched worker over the line has to save before it is killed: it is still growing.
const OVER_LINE_GRACE: Duration = Duration::from_secs(5);
/// A watched worker that is being stopped and grows beyond the line by this part of it gets no more time.
const FAR_OVER: u64 = 4;
/// The first looks at a job are this far apart.
const YOUNG: Duration = Duration::from_millis(2);
/// What Ctrl-C and Ctrl-Z are on their way to a terminal.
const CTRL_C: u8 = 3;
const CTRL_Z: u8 = 26;
/// How long a killed worker has to go.
const AFTER_KILL: Duration = Duration::from_secs(10);
/// Looking may take at most this share of the time (1/50) while memory moves, and this one while nothing does; it is at
/// least done this often.
const SAMPLE_COST: u32 = 50;
const SAMPLE_COST_STILL: u32 = 300;
const SAMPLE_SLOWEST: Duration = Duration::from_secs(2);

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
            } else if now >= next_sample {
                next_sample = now + self.sample_every;
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
            self.wait(wait, true);
            if std::mem::take(&mut self.suspends) {
                self.suspend_if_it_would_be();
            }
        }
        self.see_out()
    }

    /// Waits until something can be read, and reads it.
    fn wait(&mut self, timeout: Duration, worker_runs: bool) {
        let mut others = Vec::new();
        if worker_runs {
            others.push(self.signals.wake_fd().as_raw_fd());
            others.extend(self.child.pidfd.as_ref().map(AsRawFd::as_raw_fd));
        }
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.wait(&others, timeout, |source, line| self.heard(source, line));
        self.pipes = pipes;
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
                let text = plain(line.bytes);
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
            Event::Stopped { checkpoint, .. } => self.story.stopped = Some(*checkpoint),
            _ => {}
        }
        if matches!(event, Event::Done(_) | Event::Failed(_) | Event::Stopped { .. }) {
            // It said its last word; hanging on the way out is no reason for us to hang.
            self.story.kill_at.get_or_insert(Instant::now() + self.grace);
        }
        self.sampler.heard(&event);
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
        self.look_at_the_line(&record);
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
        if self.confinement.group().is_some() {
            return;
        }
        let Some(over) = self.sampler.over_line(&record) else {
            return;
        };
        if self.story.stopped_by.is_none() {
            self.story.over_line = Some(over);
            queue.push(Item::OverLine(over));
            self.stop(StopReason::OverLine, self.grace.min(OVER_LINE_GRACE));
        } else if over.used - over.limit > over.limit / FAR_OVER {
            // It was asked to stop and grows on: the machine comes before its last words.
            self.kill();
        }
    }

    /// Says when most of the line is taken, and lets the job save if it was asked for.
    fn look_at_the_line(&mut self, record: &FlightRecord) {
        let Some(limit) = self.limit else { return };
        let group = self.confinement.group();
        let all = record.cgroup_usage.or(record.proportional).or(record.resident);
        let Some(used) = all.filter(|used| *used as f64 >= NEAR * limit as f64) else {
            self.near = false;
            return;
        };
        // Of a cgroup, pages that are only cached do not count: the kernel takes them back first.
        let used = group.and_then(Group::held).unwrap_or(used);
        if self.near || (used as f64) < NEAR * limit as f64 {
            return;
        }
        self.near = true;
        self.queue.push(Item::NearLine { used, limit });
        if let Some(signal) = self.before_kill.take() {
            self.child.signal(signal, false);
            self.note_signal(signal, SignalReason::NearLine);
        }
    }

    fn check_signals(&mut self) {
        let came = self.signals.take();
        if self.on_signal == OnSignal::PassOn {
            came.into_iter().for_each(|came| self.pass_on(came));
            return;
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
        self.facts.signals.push(SentSignal { time_ms, signal, why });
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

    /// The worker is over: hear its last words, end what it left behind, read the counters, clean up.
    fn see_out(mut self) -> Ended {
        let patience = Instant::now() + DRAIN;
        while self.pipes.is_open() && Instant::now() < patience {
            self.wait(patience.saturating_duration_since(Instant::now()), false);
        }
        // Whoever reads our own output may be slow: the job would have waited for them.
        while self.pipes.is_waiting() && self.signals.take().is_empty() {
            self.wait(TICK, true);
        }
        // Before the status is taken: until then the numbers cannot belong to anyone else.
        self.child.kill_group();
        if let Some(group) = self.confinement.group() {
            group.kill();
        }
        for pid in self.sampler.left_over() {
            // SAFETY: kill has no memory effects; the start time says that it is a process we saw.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        // What was in the pipes when their last writers were killed.
        for _ in 0..16 {
            self.wait(Duration::ZERO, false);
        }
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.finish(|source, line| self.heard(source, line));
        if let Some(terminal) = &mut self.child.terminal {
            terminal.give_back();
        }

        // One that was over before anybody looked still has its limits until it is waited for.
        self.limits.look(std::iter::once(self.child.pid));
        let (exit, max_resident) = self.child.reap();
        let queue = self.queue;
        let final_record = self.sampler.last_look(self.confinement.group());
        self.recorder
            .keep(&final_record, |text| queue.push(Item::warning(text)));
        let ended = self.account(exit, max_resident);
        let facts = self.facts(&ended);
        self.recorder
            .facts(&facts, |text| queue.push(Item::warning(text)));
        if let Some(trouble) = self.confinement.remove() {
            self.warn(trouble);
        }
        ended
    }

    /// What was seen, with what is only known now.
    fn facts(&mut self, ended: &Ended) -> Facts {
        let time_ms = self.sampler.time_ms();
        self.stillness.moved(time_ms, &self.sampler.family.ended);
        let kernel = std::mem::take(&mut self.kernel).end(ended.exit == Exit::Code(0));
        let devices = self.devices.end();
        let counters = std::mem::take(&mut self.counters).after(self.host);
        Facts {
            crashes: self
                .modules
                .crashes(&kernel, self.facts.command.first().map(Path::new)),
            kernel,
            exit: Some(ended.exit),
            failure: ended.failed.clone(),
            duration_ms: Some(time_ms),
            containment: ended.containment.clone(),
            peak: ended.peak,
            peak_source: ended.peak_source.map(str::to_owned),
            over_line: ended.over_line,
            limits: std::mem::take(&mut self.limits).tightest(),
            shared_memory_size: self.sampler.shared_memory_size,
            counters: [counters, devices.counters].concat(),
            device_faults: devices.faults,
            devices_unavailable: devices.unavailable,
            ended_children: std::mem::take(&mut self.sampler.family.ended),
            stalls: std::mem::take(&mut self.stillness.stalls),
            ..std::mem::take(&mut self.facts)
        }
    }

    fn account(&mut self, exit: Exit, max_resident: Option<u64>) -> Ended {
        // Below our own size the kernel's figure is that of the fork, not of the worker.
        let above_floor = max_resident.filter(|&bytes| self.resident_floor.is_none_or(|floor| bytes > floor));
        let (resident_peak, resident_source) = match above_floor {
            Some(bytes) => (Some(bytes), "ru_maxrss"),
            None => (self.sampler.peak_resident, "VmHWM"),
        };
        let group = self.confinement.group();
        let (peak, peak_source) = match group.and_then(|group| group.peak()) {
            Some(bytes) => (Some(bytes), Some("cgroup peak")),
            None => (resident_peak, resident_peak.map(|_| resident_source)),
        };
        let story = std::mem::take(&mut self.story);
        Ended {
            exit,
            peak,
            peak_source,
            resident_peak,
            oom_kills: group.and_then(|group| group.oom_kills()),
            limit: self.limit,
            containment: self.confinement.describe(),
            stopped_by: story.stopped_by,
            killed_by_us: story.killed_at.is_some(),
            over_line: story.over_line,
            stopped: story.stopped,
            failed: story.failed,
            done: story.done,
            speaks: self.speaks,
            last: self.sampler.last,
            duration: self.sampler.elapsed(),
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
