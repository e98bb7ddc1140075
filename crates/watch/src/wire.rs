//! The two ends of the event pipe: the worker's writer, and lines cut out of a stream of bytes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::event::Event;

/// The longest line of events or output that is kept; the rest of it is dropped and counted.
pub(crate) const LINE_LIMIT: usize = 64 * 1024;

/// The worker's end. Threads may share it: each event is one line, never mixed with another.
#[derive(Debug)]
pub struct EventWriter {
    pipe: Mutex<File>,
}

impl EventWriter {
    /// Takes over the file descriptor that the supervisor passed as `--events-fd N`, and says hello.
    /// A number that is no open pipe (a person trying the hidden command) is refused.
    pub fn from_fd(fd: i32) -> Result<EventWriter> {
        let refused = |source| Error::EventsFd { fd, source };
        if fd < 3 {
            return Err(refused(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        // SAFETY: F_SETFD only changes a flag, and fails with EBADF for a number that is not open.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
            return Err(refused(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is open (checked above), and the supervisor passed it for this use only.
        let pipe = unsafe { File::from_raw_fd(fd) };
        let writer = EventWriter::new(pipe);
        writer.send(&Event::hello()).map_err(refused)?;
        Ok(writer)
    }

    /// Writes to any file, without a hello.
    pub fn new(pipe: File) -> EventWriter {
        EventWriter {
            pipe: Mutex::new(pipe),
        }
    }

    /// Sends one event. `BrokenPipe` means that nobody listens any more: the supervisor is gone and the
    /// worker should save what it has and end.
    pub fn send(&self, event: &Event) -> io::Result<()> {
        let Some(line) = event.to_line() else {
            return Ok(());
        };
        // A panic while holding the lock cannot leave half a line in anything but the pipe itself.
        self.pipe
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(&line)
    }
}

/// A line cut out of a stream, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// Bytes of the line that were dropped because it was too long.
    pub(crate) dropped: u64,
}

/// Cuts a stream into lines and never holds more than one line's limit.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    dropped: u64,
    /// What a carriage return is followed by replaces the line so far, as on a screen: of a progress bar, only its last
    /// state is a line.
    overwrites: bool,
    returned: bool,
}

impl Lines {
    /// As a screen would show them.
    pub(crate) fn on_screen() -> Lines {
        Lines {
            overwrites: true,
            ..Lines::default()
        }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], mut on_line: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.keep(&bytes[..end]);
            self.end(&mut on_line);
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// The stream is over: what stands without a newline is the last line.
    pub(crate) fn finish(&mut self, mut on_line: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() || self.dropped > 0 {
            self.end(&mut on_line);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if !self.overwrites {
            return self.add(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\r') {
            let text = piece.strip_suffix(b"\r").unwrap_or(piece);
            if self.returned && !text.is_empty() {
                self.partial.clear();
                (self.dropped, self.returned) = (0, false);
            }
            self.add(text);
            self.returned |= text.len() < piece.len();
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = LINE_LIMIT - self.partial.len();
        let kept = bytes.len().min(room);
        self.partial.extend_from_slice(&bytes[..kept]);
        self.dropped += (bytes.len() - kept) as u64;
    }

    fn end(&mut self, on_line: &mut impl FnMut(Line<'_>)) {
        let bytes = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        on_line(Line {
            bytes,
            dropped: self.dropped,
        });
        self.partial.clear();
        (self.dropped, self.returned) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece, |line| found.push((line.bytes.to_vec(), line.dropped)));
        }
        lines.finish(|line| found.push((line.bytes.to_vec(), line.dropped)));
        found
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let whole = cut(&[b"one\r\n\ntwo\nthree"]);
        assert_eq!(
            whole,
            [
                (b"one".to_vec(), 0),
                (b"".to_vec(), 0),
                (b"two".to_vec(), 0),
                (b"three".to_vec(), 0)
            ]
        );
        let bytewise: Vec<&[u8]> = b"one\r\n\ntwo\nthree".chunks(1).collect();
        assert_eq!(cut(&bytewise), whole);
    }

    #[test]
    fn of_a_progress_bar_the_last_state_is_a_line() {
        let text = b"start\r\n 10%\r 20%\r100%\r\nend\r 1%\r 2%";
        for size in [1, 3, 7, 100] {
            let mut lines = Lines::on_screen();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece, |line| found.push(line.bytes.to_vec()));
            }
            lines.finish(|line| found.push(line.bytes.to_vec()));
            let expected: [&[u8]; 3] = [b"start", b"100%", b" 2%"];
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_huge_line_is_cut_and_counted() {
        let huge = vec![b'x'; LINE_LIMIT + 5];
        assert_eq!(
            cut(&[&huge, b"yy\nz\n"]),
            [(vec![b'x'; LINE_LIMIT], 7), (b"z".to_vec(), 0)]
        );
    }

    #[test]
    fn a_number_that_is_not_open_is_refused() {
        assert!(matches!(
            EventWriter::from_fd(999_999),
            Err(Error::EventsFd { fd: 999_999, .. })
        ));
        assert!(matches!(EventWriter::from_fd(1), Err(Error::EventsFd { .. })));
    }
}
