//! Output that is passed on as it comes, and never faster than it is taken: a reader that is slow holds the job up, as it
//! would have without us, and one that is gone ends its pipe.

use std::io;
use std::os::fd::RawFd;

/// So much can be written to a pipe without waiting once `poll` has said that anything can.
const AT_ONCE: usize = 4096;

/// Where bytes go, and those that are still to be written.
#[derive(Debug)]
pub(crate) struct Through {
    pub(crate) to: RawFd,
    waiting: Vec<u8>,
    written: usize,
    /// A file makes nobody wait, however much is written.
    at_once: usize,
    pub(crate) closed: bool,
}

impl Through {
    pub(crate) fn new(to: RawFd) -> Through {
        Through {
            to,
            waiting: Vec::new(),
            written: 0,
            at_once: if is_file(to) { usize::MAX } else { AT_ONCE },
            closed: false,
        }
    }

    /// Whether there is something to be written before more is read.
    pub(crate) fn is_waiting(&self) -> bool {
        self.written < self.waiting.len() && !self.closed
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Writes as long as that needs no waiting.
    pub(crate) fn write(&mut self) {
        while self.is_waiting() && can_write(self.to) {
            let part = &self.waiting[self.written..];
            let part = &part[..part.len().min(self.at_once)];
            // SAFETY: writes from a buffer of the given length to a descriptor that stays open.
            let wrote = unsafe { libc::write(self.to, part.as_ptr().cast(), part.len()) };
            match usize::try_from(wrote) {
                Ok(wrote) => self.written += wrote,
                Err(_) => match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return,
                    // The reader is gone.
                    _ => self.closed = true,
                },
            }
        }
        if !self.is_waiting() {
            self.waiting.clear();
            self.written = 0;
        }
    }
}

fn is_file(fd: RawFd) -> bool {
    // SAFETY: all-zero bytes are a valid stat, which the call fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fills a local structure.
    (unsafe { libc::fstat(fd, &mut stat) } == 0) && stat.st_mode & libc::S_IFMT == libc::S_IFREG
}

fn can_write(fd: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one structure, and no waiting.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}
