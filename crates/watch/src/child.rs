//! Starting the worker so that it can be ended, and waiting for it without hanging.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::ended::Exit;
use crate::error::{Error, Result};
use crate::family::exit_of;
use crate::job::{Job, Output};
use crate::oom_score;
use crate::terminal::Terminal;

/// A worker that was started and not yet waited for.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: i32,
    /// Readable once the worker is over. `None` on kernels before 5.3: then it is asked for.
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) events: Option<OwnedFd>,
    pub(crate) out: Option<OwnedFd>,
    pub(crate) err: Option<OwnedFd>,
    /// Where it has a terminal because we have one.
    pub(crate) terminal: Option<Terminal>,
    /// Output and errors come through one pipe.
    pub(crate) is_one_stream: bool,
    /// Why it did not get into its cgroup.
    pub(crate) join_error: Option<io::Error>,
}

pub(crate) fn spawn(job: &Job<'_>, procs: Option<&File>) -> Result<Child> {
    let os = |action| move |source| Error::Os { action, source };
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .envs(job.envs.iter().map(|(name, value)| (name, value)));

    let mut events = None;
    let mut events_write = None;
    if job.events {
        let (read, write) = pipe(false).map_err(os("make a pipe for events"))?;
        nonblocking(&read).map_err(os("make a pipe for events"))?;
        // The number is passed rather than moved to a fixed place: any fixed place may be in use
        // between fork and exec.
        command.arg("--events-fd").arg(write.as_raw_fd().to_string());
        (events, events_write) = (Some(read), Some(write));
    }
    command.stdin(if job.stdin {
        Stdio::inherit()
    } else {
        Stdio::null()
    });
    let mut terminal = match job.output {
        Output::Through => Terminal::like_ours().map_err(os("make a terminal"))?,
        Output::Inherit | Output::Log => None,
    };
    if job.output != Output::Inherit {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    // What goes to the same place keeps its order only in one pipe.
    let mut both = None;
    if job.output == Output::Through && terminal.is_none() && is_same(1, 2) {
        let (read, write) = pipe(false).map_err(os("make a pipe"))?;
        let write_too = write.try_clone().map_err(os("make a pipe"))?;
        command.stdout(Stdio::from(write)).stderr(Stdio::from(write_too));
        both = Some(read);
    }
    if let Some(terminal) = &terminal
        && let Some(theirs) = &terminal.theirs
    {
        let end = || theirs.try_clone().map(Stdio::from).map_err(os("make a terminal"));
        let [input, output, error] = terminal.streams;
        if input {
            command.stdin(end()?);
        }
        if output {
            command.stdout(end()?);
        }
        if error {
            command.stderr(end()?);
        }
    }

    let (joined, join_write) = pipe(true).map_err(os("make a pipe"))?;
    let before_exec = BeforeExec {
        parent: std::process::id().cast_signed(),
        events: events_write.as_ref().map(AsRawFd::as_raw_fd),
        hold_stops: job.hold_stops,
        procs: procs.map(AsRawFd::as_raw_fd),
        join_error: join_write.as_raw_fd(),
        oom_score: oom_score::for_worker().unwrap_or_default().into_bytes(),
        terminal: terminal
            .as_ref()
            .and_then(|terminal| terminal.theirs.as_ref().map(AsRawFd::as_raw_fd)),
    };
    // SAFETY: `run` calls only async-signal-safe functions and allocates nothing.
    unsafe { command.pre_exec(move || before_exec.run()) };
    let mut spawned = command.spawn().map_err(|source| Error::Spawn {
        program: job.program.clone(),
        source,
    })?;

    // Only the job may hold the other end: that is how the end of its output shows.
    drop(command);
    if let Some(terminal) = &mut terminal {
        terminal.theirs = None;
        terminal.take_over();
    }
    let pid = spawned.id().cast_signed();
    let is_one = both.is_some();
    let out = both.or_else(|| spawned.stdout.take().map(OwnedFd::from));
    let err = spawned.stderr.take().map(OwnedFd::from);
    for output in [&out, &err].into_iter().flatten() {
        // A blocking pipe would still be read only when poll says that there is something.
        let _ = nonblocking(output);
    }
    Ok(Child {
        pid,
        pidfd: pidfd(pid),
        events,
        out,
        err,
        terminal,
        join_error: read_errno(&joined),
        is_one_stream: is_one,
    })
}

/// What the child does between fork and exec.
struct BeforeExec {
    parent: i32,
    events: Option<RawFd>,
    hold_stops: bool,
    procs: Option<RawFd>,
    join_error: RawFd,
    oom_score: Vec<u8>,
    terminal: Option<RawFd>,
}

impl BeforeExec {
    fn run(&self) -> io::Result<()> {
        // SAFETY: every call here is async-signal-safe, on descriptors that the parent keeps open until
        // exec, and on buffers of the given lengths.
        unsafe {
            // A group of its own: Ctrl-C in the terminal reaches only the supervisor, and the whole
            // group can be killed at once.
            if let Some(terminal) = self.terminal {
                // A session of its own, for a terminal belongs to one.
                if libc::setsid() < 0 || libc::ioctl(terminal, libc::TIOCSCTTY, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            } else if libc::setpgid(0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            // A worker whose supervisor was killed saves what it has and ends.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The supervisor may have died before the line above.
            if libc::getppid() != self.parent {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
            if let Some(procs) = self.procs
                && libc::write(procs, b"0".as_ptr().cast(), 1) != 1
            {
                // Not fatal: the supervisor reads the reason and watches instead.
                let errno = (*libc::__errno_location()).to_le_bytes();
                libc::write(self.join_error, errno.as_ptr().cast(), errno.len());
            }
            let score = libc::open(
                c"/proc/self/oom_score_adj".as_ptr(),
                libc::O_WRONLY | libc::O_CLOEXEC,
            );
            if score >= 0 {
                libc::write(score, self.oom_score.as_ptr().cast(), self.oom_score.len());
                libc::close(score);
            }
            if let Some(events) = self.events
                && libc::fcntl(events, libc::F_SETFD, 0) != 0
            {
                return Err(io::Error::last_os_error());
            }
            if self.hold_stops {
                // A worker of ours must not die of a request to stop before it can hear it.
                let mut stops: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut stops);
                libc::sigaddset(&mut stops, libc::SIGTERM);
                libc::sigaddset(&mut stops, libc::SIGINT);
                libc::sigprocmask(libc::SIG_BLOCK, &stops, std::ptr::null_mut());
            }
        }
        Ok(())
    }
}

impl Child {
    /// Whether the worker is over. It stays a zombie, so its number and group cannot be reused yet.
    pub(crate) fn is_over(&self) -> bool {
        // SAFETY: all-zero bytes are a valid siginfo_t; waitid fills it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: asks about our own child into a local value.
        let answer = unsafe { libc::waitid(libc::P_PID, self.pid.cast_unsigned(), &mut info, flags) };
        if answer != 0 {
            // ECHILD: someone else waited for it.
            return io::Error::last_os_error().kind() != io::ErrorKind::Interrupted;
        }
        // SAFETY: waitid succeeded, so si_pid is set: zero when the child still runs.
        unsafe { info.si_pid() != 0 }
    }

    /// Takes the exit status, and the resident peak that the kernel counted since the fork.
    /// Does not wait: a worker that is not over has no status.
    pub(crate) fn reap(&self) -> (Exit, Option<u64>) {
        let mut status = 0;
        // SAFETY: all-zero bytes are a valid rusage; wait4 fills it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: waits for our own child into local values.
        let answer = unsafe { libc::wait4(self.pid, &mut status, libc::WNOHANG, &mut usage) };
        if answer != self.pid {
            return (Exit::Unknown, None);
        }
        // Linux counts ru_maxrss in kilobytes.
        let peak = u64::try_from(usage.ru_maxrss)
            .ok()
            .filter(|&kilobytes| kilobytes > 0);
        (exit_of(status), peak.map(|kilobytes| kilobytes * 1024))
    }

    /// Sends a signal to the job, or to all of its group.
    pub(crate) fn signal(&self, signal: i32, group: bool) {
        // SAFETY: the child has not been waited for, so the number is still its own and its group's.
        unsafe { libc::kill(if group { -self.pid } else { self.pid }, signal) };
    }

    /// Whether the job has its own mind about being stopped by Ctrl-Z: it ignores the signal, or catches it.
    pub(crate) fn minds_suspension(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        ["SigIgn:", "SigCgt:"]
            .iter()
            .any(|mask| has_signal(&status, mask, libc::SIGTSTP))
    }

    /// Asks the worker to save and end; one that was stopped is woken to hear it.
    pub(crate) fn terminate(&self) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe {
            libc::kill(self.pid, libc::SIGTERM);
            libc::kill(self.pid, libc::SIGCONT);
        }
    }

    /// Kills the worker and all that is left of its group.
    pub(crate) fn kill_group(&self) {
        // SAFETY: the child has not been waited for, so the number is still its own and its group's.
        unsafe {
            libc::kill(-self.pid, libc::SIGKILL);
            libc::kill(self.pid, libc::SIGKILL);
        }
    }
}

/// Whether a mask of `/proc/PID/status` has this signal.
pub(crate) fn has_signal(status: &str, mask: &str, signal: i32) -> bool {
    let mut masks = status.lines().filter_map(|line| line.strip_prefix(mask));
    let mask = masks
        .next()
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Whether both are the same file, pipe or socket.
fn is_same(one: RawFd, other: RawFd) -> bool {
    let of = |fd| {
        // SAFETY: all-zero bytes are a valid stat, which the call fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fills a local structure.
        (unsafe { libc::fstat(fd, &mut stat) } == 0).then_some((stat.st_dev, stat.st_ino))
    };
    of(one).is_some() && of(one) == of(other)
}

/// A pipe that children do not inherit.
pub(crate) fn pipe(nonblocking: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let flags = libc::O_CLOEXEC | if nonblocking { libc::O_NONBLOCK } else { 0 };
    // SAFETY: pipe2 fills two descriptors, which nothing else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), flags) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn nonblocking(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: changes a flag of a descriptor that we own.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a plain system call on our own, not yet waited for child; the result is a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a non-negative answer is an open descriptor that nothing else owns.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn read_errno(joined: &OwnedFd) -> Option<io::Error> {
    let mut errno = [0u8; 4];
    // SAFETY: reads at most four bytes into a buffer of four; the pipe does not block.
    let read = unsafe { libc::read(joined.as_raw_fd(), errno.as_mut_ptr().cast(), errno.len()) };
    (read == 4).then(|| io::Error::from_raw_os_error(i32::from_le_bytes(errno)))
}
