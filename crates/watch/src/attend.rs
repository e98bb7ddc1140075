//! The thread that attends the worker: reads what it says, looks at its memory, passes signals on, and
//! sees it out. It waits for nobody without a bound.

use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use tidegate_runs::Stream;

use crate::child::Child;
use crate::confine::Confinement;
use crate::ended::{Ended, Exit, OverLine};
use crate::event::{Done, Event, Failure, WIRE_VERSION};
use crate::job::{Job, StopReason};
use crate::queue::{Item, Queue};
use crate::recorder::Recorder;
use crate::sampler::Sampler;
use crate::signals::Signals;
use crate::wire::{Line, Lines};

/// The longest wait between two checks of clocks, signals and the caller.
const TICK: Duration = Duration::from_millis(100);
/// How long output may still come after the worker is over, from processes that it left behind.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a watched worker over the line has to save before it is killed: it is still growing.
const OVER_LINE_GRACE: Duration = Duration::from_secs(5);
/// A watched worker that is being stopped and grows beyond the line by this part of it gets no more time.
const FAR_OVER: u64 = 4;
/// How long a killed worker has to go.
const AFTER_KILL: Duration = Duration::from_secs(10);
/// Looking may take at most this share of the time (1/50), and is at least done this often.
const SAMPLE_COST: u32 = 50;
const SAMPLE_SLOWEST: Duration = Duration::from_secs(2);
const BUFFER: usize = 64 * 1024;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Events,
    Output(Stream),
}

struct Pipe {
    source: Source,
    file: std::fs::File,
    lines: Lines,
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
    failed: Option<Failure>,
    done: Option<Done>,
}

pub(crate) struct Attend<'a> {
    child: Child,
    confinement: &'a mut Confinement,
    signals: Signals,
    queue: &'a Queue,
    recorder: Recorder,
    sampler: Sampler<'a>,
    pipes: Vec<Pipe>,
    buffer: Vec<u8>,
    story: Story,
    speaks: bool,
    limit: Option<u64>,
    grace: Duration,
    sample_every: Duration,
    /// Our own resident peak when the worker was forked: the kernel counts the worker's from there.
    resident_floor: Option<u64>,
}

/// What [`Attend::new`] takes over.
pub(crate) struct Parts<'a> {
    pub(crate) child: Child,
    pub(crate) confinement: &'a mut Confinement,
    pub(crate) signals: Signals,
    pub(crate) queue: &'a Queue,
    pub(crate) recorder: Recorder,
    pub(crate) sampler: Sampler<'a>,
    pub(crate) resident_floor: Option<u64>,
}

impl<'a> Attend<'a> {
    pub(crate) fn new(job: &Job<'_>, mut parts: Parts<'a>) -> Attend<'a> {
        let pipe = |source, fd: Option<OwnedFd>| {
            fd.map(|fd| Pipe {
                source,
                file: std::fs::File::from(fd),
                lines: Lines::default(),
            })
        };
        let pipes = [
            pipe(Source::Events, parts.child.events.take()),
            pipe(Source::Output(Stream::Out), parts.child.out.take()),
            pipe(Source::Output(Stream::Err), parts.child.err.take()),
        ];
        Attend {
            child: parts.child,
            confinement: parts.confinement,
            signals: parts.signals,
            queue: parts.queue,
            recorder: parts.recorder,
            sampler: parts.sampler,
            pipes: pipes.into_iter().flatten().collect(),
            buffer: vec![0; BUFFER],
            story: Story::default(),
            speaks: job.events,
            limit: job.limit_bytes,
            grace: job.grace,
            sample_every: job.sample_every.max(Duration::from_millis(1)),
            resident_floor: parts.resident_floor,
        }
    }

    /// From the start of the worker to the removal of its cgroup.
    pub(crate) fn run(mut self) -> Ended {
        let mut next_sample = Instant::now();
        while !self.child.is_over() {
            let now = Instant::now();
            if now >= next_sample {
                self.look();
                let cost = now.elapsed() * SAMPLE_COST;
                next_sample = now + self.sample_every.max(cost.min(SAMPLE_SLOWEST));
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
        }
        self.see_out()
    }

    /// Waits until something can be read, and reads it.
    fn wait(&mut self, timeout: Duration, worker_runs: bool) {
        let mut fds: Vec<libc::pollfd> = self
            .pipes
            .iter()
            .map(|pipe| readable(pipe.file.as_raw_fd()))
            .collect();
        if worker_runs {
            fds.push(readable(self.signals.wake_fd().as_raw_fd()));
            fds.extend(self.child.pidfd.as_ref().map(|fd| readable(fd.as_raw_fd())));
        }
        // Rounded up, so that a wait of less than a millisecond does not spin.
        let timeout = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the array has the given length and lives through the call. An interrupted or failed
        // poll reads nothing and is tried again by the caller's loop.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if ready <= 0 {
            return;
        }
        let pipes = fds.iter().take(self.pipes.len());
        let ready: Vec<usize> = pipes
            .enumerate()
            .filter(|(_, fd)| fd.revents != 0)
            .map(|(index, _)| index)
            .collect();
        let over: Vec<usize> = ready.into_iter().filter(|&index| !self.read(index)).collect();
        // From the back, so that closing one moves none that is still to be closed.
        for index in over.into_iter().rev() {
            let mut pipe = self.pipes.remove(index);
            pipe.lines.finish(|line| self.heard(pipe.source, &line));
        }
    }

    /// Reads a bounded amount, so that a flood on one pipe holds nothing else up. `false` at the end.
    fn read(&mut self, index: usize) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let source = self.pipes[index].source;
        let mut lines = std::mem::take(&mut self.pipes[index].lines);
        let mut open = true;
        for _ in 0..4 {
            match (&self.pipes[index].file).read(&mut buffer) {
                Ok(0) => open = false,
                Ok(read) => {
                    lines.push(&buffer[..read], |line| self.heard(source, &line));
                    if read == buffer.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => open = false,
            }
            break;
        }
        self.pipes[index].lines = lines;
        self.buffer = buffer;
        open
    }

    fn heard(&mut self, source: Source, line: &Line<'_>) {
        match source {
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
        let record = self.sampler.sample(self.confinement.group());
        let queue = self.queue;
        self.recorder
            .sample(&record, |text| queue.push(Item::warning(text)));
        queue.push(Item::Sample(record));
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

    fn check_signals(&mut self) {
        let (interrupts, terminations) = self.signals.take();
        for reason in [
            (interrupts, StopReason::Interrupt),
            (terminations, StopReason::Terminate),
        ]
        .into_iter()
        .flat_map(|(times, reason)| std::iter::repeat_n(reason, times.min(2) as usize))
        {
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
        while !self.pipes.is_empty() && Instant::now() < patience {
            self.wait(patience.saturating_duration_since(Instant::now()), false);
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
        for mut pipe in std::mem::take(&mut self.pipes) {
            pipe.lines.finish(|line| self.heard(pipe.source, &line));
        }

        let (exit, max_resident) = self.child.reap();
        let queue = self.queue;
        let final_record = self.sampler.last_look(self.confinement.group());
        self.recorder
            .keep(&final_record, |text| queue.push(Item::warning(text)));
        let ended = self.account(exit, max_resident);
        if let Some(trouble) = self.confinement.remove() {
            self.warn(trouble);
        }
        ended
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

fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}
