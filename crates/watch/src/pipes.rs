//! What comes out of a job, and what is typed to it: read as it comes, cut into lines, passed on.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use tidegate_runs::Stream;

use crate::child::Child;
use crate::job::{Job, Output};
use crate::terminal::Terminal;
use crate::through::Through;
use crate::wire::{Line, Lines};

const BUFFER: usize = 64 * 1024;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Events,
    Output(Stream),
    /// What is typed, on its way to the job.
    Input,
}

#[derive(Debug)]
struct Pipe {
    source: Source,
    file: File,
    lines: Lines,
    through: Option<Through>,
}

/// All that is to be read.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    pipes: Vec<Pipe>,
    /// Whether what is typed is for us to read.
    listens: bool,
    buffer: Vec<u8>,
}

impl Pipes {
    /// Takes over what a child was started with.
    pub(crate) fn of(child: &mut Child, job: &Job<'_>) -> Pipes {
        let mut pipes = Vec::new();
        let mut add = |source, fd: Option<OwnedFd>, to: Option<RawFd>| {
            pipes.extend(fd.map(|fd| Pipe {
                source,
                file: File::from(fd),
                lines: if to.is_some() {
                    Lines::on_screen()
                } else {
                    Lines::default()
                },
                through: to.map(Through::new),
            }));
        };
        let passed = |fd| (job.output == Output::Through).then_some(fd);
        add(Source::Events, child.events.take(), None);
        add(Source::Output(Stream::Out), child.out.take(), passed(1));
        add(Source::Output(Stream::Err), child.err.take(), passed(2));
        if let Some(terminal) = &child.terminal {
            let screen = Some(terminal.screen);
            add(
                Source::Output(Stream::Out),
                terminal.ours.try_clone().ok(),
                screen,
            );
            if terminal.streams[0] {
                // SAFETY: a copy of our own standard input, which only this owns.
                let typed = unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3) };
                // SAFETY: a non-negative answer is an open descriptor that nothing else owns.
                let typed = (typed >= 0).then(|| unsafe { OwnedFd::from_raw_fd(typed) });
                add(Source::Input, typed, Some(terminal.ours.as_raw_fd()));
            }
        }
        Pipes {
            pipes,
            listens: child.terminal.as_ref().is_some_and(Terminal::is_ours),
            buffer: vec![0; BUFFER],
        }
    }

    /// From now on reads what is typed, or leaves it to others.
    pub(crate) fn listen(&mut self, listens: bool) {
        self.listens = listens;
    }

    /// Whether the job may still say something.
    pub(crate) fn is_open(&self) -> bool {
        self.pipes.iter().any(|pipe| pipe.source != Source::Input)
    }

    /// Whether something that it said has not been taken yet by whoever reads our own output.
    pub(crate) fn is_waiting(&self) -> bool {
        let waits = |pipe: &Pipe| pipe.through.as_ref().is_some_and(Through::is_waiting);
        self.pipes
            .iter()
            .any(|pipe| pipe.source != Source::Input && waits(pipe))
    }

    /// Waits until something can be read or passed on, or one of `others` has something to say, and does it. `heard`
    /// gets the lines.
    pub(crate) fn wait(
        &mut self,
        others: &[RawFd],
        timeout: Duration,
        mut heard: impl FnMut(Source, &Line<'_>),
    ) {
        let of_pipe = |pipe: &Pipe| match &pipe.through {
            Some(through) if through.is_waiting() => polled(through.to, libc::POLLOUT),
            // Passed over by the kernel.
            _ if pipe.source == Source::Input && !self.listens => polled(-1, 0),
            _ => polled(pipe.file.as_raw_fd(), libc::POLLIN),
        };
        let mut fds: Vec<libc::pollfd> = self.pipes.iter().map(of_pipe).collect();
        fds.extend(others.iter().map(|fd| polled(*fd, libc::POLLIN)));
        // Rounded up, so that a wait of less than a millisecond does not spin.
        let timeout = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the array has the given length and lives through the call. An interrupted or failed
        // poll reads nothing and is tried again by the caller's loop.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if ready <= 0 {
            return;
        }
        let buffer = &mut self.buffer;
        let mut at = 0;
        self.pipes.retain_mut(|pipe| {
            let is_ready = fds[at].revents != 0;
            at += 1;
            if !is_ready || pipe.go_on(buffer, &mut heard) {
                return true;
            }
            pipe.lines.finish(|line| heard(pipe.source, &line));
            false
        });
    }

    /// The streams are over: what stands without a newline is the last line.
    pub(crate) fn finish(&mut self, mut heard: impl FnMut(Source, &Line<'_>)) {
        for mut pipe in std::mem::take(&mut self.pipes) {
            pipe.lines.finish(|line| heard(pipe.source, &line));
        }
    }
}

impl Pipe {
    /// Reads a bounded amount, so that a flood on one pipe holds nothing else up, or passes on what was read before.
    /// `false` at the end.
    fn go_on(&mut self, buffer: &mut [u8], heard: &mut impl FnMut(Source, &Line<'_>)) -> bool {
        if let Some(through) = self.through.as_mut().filter(|through| through.is_waiting()) {
            through.write();
            return !through.closed;
        }
        for _ in 0..4 {
            match (&self.file).read(buffer) {
                Ok(0) => return false,
                Ok(read) => {
                    let bytes = &buffer[..read];
                    if let Some(through) = &mut self.through {
                        through.push(bytes);
                        through.write();
                    }
                    match self.source {
                        Source::Input => heard(self.source, &Line { bytes, dropped: 0 }),
                        _ => self.lines.push(bytes, |line| heard(self.source, &line)),
                    }
                    // What was typed comes in small pieces, and reading more of it would wait.
                    let more = self.source != Source::Input && read == buffer.len();
                    if !more || self.through.as_ref().is_some_and(Through::is_waiting) {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => break,
                // A terminal whose other end is closed says so by an error.
                Err(_) => return false,
            }
        }
        self.through.as_ref().is_none_or(|through| !through.closed)
    }
}

pub(crate) fn polled(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}
