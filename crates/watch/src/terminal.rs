//! A terminal for the job where we have one: it sees a terminal of its own, of the same size and settings, and what it
//! writes there is passed on as it is. So progress bars and colours work, and every line can still be recorded.
//!
//! Ours is switched to raw meanwhile: Ctrl-C becomes a byte that the job's own terminal turns into a signal, as it would
//! have without us.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The job's terminal, and ours while it lives.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Our end of the job's terminal.
    pub(crate) ours: OwnedFd,
    /// The job's end, until it has been started.
    pub(crate) theirs: Option<OwnedFd>,
    /// Which of standard input, output and error are the terminal.
    pub(crate) streams: [bool; 3],
    /// The descriptor of our own terminal to write to.
    pub(crate) screen: RawFd,
    /// As our terminal was, where it was changed.
    before: Option<libc::termios>,
}

impl Terminal {
    /// A terminal like ours, if any of our streams is one.
    pub(crate) fn like_ours() -> io::Result<Option<Terminal>> {
        // SAFETY: isatty only asks.
        let streams = [0, 1, 2].map(|fd| unsafe { libc::isatty(fd) } == 1);
        // What is written there is seen; standard input is the last choice, though it is the same device.
        let Some(screen) = [1, 2, 0].into_iter().find(|fd| streams[*fd as usize]) else {
            return Ok(None);
        };
        let (mut ours, mut theirs) = (-1, -1);
        let settings = settings(screen)?;
        let size = size(screen);
        // SAFETY: openpty fills the two descriptors, which nothing else owns; settings and size are read only, and
        // the name is not asked for.
        let made = unsafe {
            libc::openpty(
                &mut ours,
                &mut theirs,
                std::ptr::null_mut(),
                &settings,
                size.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            )
        };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: openpty succeeded, so both are open and ours.
        let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        for fd in [&ours, &theirs] {
            // SAFETY: changes a flag of a descriptor that we own.
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: as above. Whoever waits for us to read must not hold us up.
        unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Some(Terminal {
            ours,
            theirs: Some(theirs),
            streams,
            screen,
            before: None,
        }))
    }

    /// From now on, what is typed goes to the job as it is. Only where we are the ones typed to: a job in the
    /// background must not touch the terminal, and one in the middle of a pipeline leaves it to the end of that.
    pub(crate) fn take_over(&mut self) {
        if !(self.streams[0] && self.streams[1]) || self.is_ours() || !in_foreground() {
            return;
        }
        let Ok(before) = settings(0) else { return };
        let mut raw = before;
        // SAFETY: both work on a local copy and on our own terminal, whose settings are put back when this drops.
        unsafe {
            libc::cfmakeraw(&mut raw);
            if libc::tcsetattr(0, libc::TCSANOW, &raw) == 0 {
                self.before = Some(before);
            }
        }
    }

    /// Whether what is typed is for us to pass on.
    pub(crate) fn is_ours(&self) -> bool {
        self.before.is_some()
    }

    /// Whether the job's terminal makes signals of what is typed, for `group`. A job that draws its own screen may have
    /// switched that off; a shell gives the terminal to others.
    pub(crate) fn makes_signals_for(&self, group: i32) -> bool {
        let ours = self.ours.as_raw_fd();
        // SAFETY: only asks who is in the foreground of a terminal that we own an end of.
        let in_foreground = unsafe { libc::tcgetpgrp(ours) };
        settings(ours).is_ok_and(|settings| settings.c_lflag & libc::ISIG != 0) && in_foreground == group
    }

    /// The window has another size now.
    pub(crate) fn follow_size(&self) {
        if let Some(size) = size(self.screen) {
            // SAFETY: reads a local structure; the kernel tells the job of the change.
            unsafe { libc::ioctl(self.ours.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        }
    }

    /// Ours as it was before.
    pub(crate) fn give_back(&mut self) {
        if let Some(before) = self.before.take() {
            // SAFETY: gives back the settings that tcgetattr returned. After what was written has been shown.
            unsafe { libc::tcsetattr(0, libc::TCSADRAIN, &before) };
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn settings(fd: RawFd) -> io::Result<libc::termios> {
    // SAFETY: all-zero bytes are a valid termios, which the call fills.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: fills a local structure.
    match unsafe { libc::tcgetattr(fd, &mut settings) } {
        0 => Ok(settings),
        _ => Err(io::Error::last_os_error()),
    }
}

fn size(fd: RawFd) -> Option<libc::winsize> {
    // SAFETY: all-zero bytes are a valid winsize, which the call fills.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: fills a local structure.
    (unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &mut size) } == 0).then_some(size)
}

fn in_foreground() -> bool {
    // SAFETY: both only ask.
    unsafe { libc::tcgetpgrp(0) == libc::getpgrp() }
}
