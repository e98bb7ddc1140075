//! Ctrl-C and its kin: counted, passed on in good order, and given back at the end.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::child::pipe;
use crate::error::{Error, Result};

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// How often each signal came. The handler may do no more than count and write one byte.
static COUNTS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
static WAKE: AtomicI32 = AtomicI32::new(-1);
static INSTALLED: Mutex<Option<Installed>> = Mutex::new(None);

/// The handlers are the process's, so supervisors on several threads share one installation.
struct Installed {
    users: usize,
    previous: [Option<libc::sigaction>; 3],
    read: Arc<OwnedFd>,
    /// Kept open for as long as the handler may write to it.
    _write: OwnedFd,
}

/// While this lives, SIGINT, SIGTERM and SIGHUP are counted instead of ending the process.
/// A signal that was ignored before (`nohup`, a background job of a script) stays ignored.
#[derive(Debug)]
pub(crate) struct Signals {
    wake: Arc<OwnedFd>,
    seen: [u32; 3],
}

impl Signals {
    pub(crate) fn install() -> Result<Signals> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = counts();
        if let Some(installed) = installed.as_mut() {
            installed.users += 1;
            return Ok(Signals {
                wake: installed.read.clone(),
                seen,
            });
        }
        let failed = |source| Error::Os {
            action: "prepare for Ctrl-C",
            source,
        };
        let (read, write) = pipe(true).map_err(failed)?;
        WAKE.store(write.as_raw_fd(), Ordering::SeqCst);
        let mut previous = [None; 3];
        for (slot, signal) in previous.iter_mut().zip(SIGNALS) {
            *slot = take_over(signal).map_err(failed)?;
        }
        let read = Arc::new(read);
        *installed = Some(Installed {
            users: 1,
            previous,
            read: read.clone(),
            _write: write,
        });
        Ok(Signals { wake: read, seen })
    }

    /// Becomes readable when a signal comes. Only a hint: another supervisor may have read it.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.wake.as_fd()
    }

    /// Signals since the last call: (interrupts, terminations and hang-ups).
    pub(crate) fn take(&mut self) -> (u32, u32) {
        let mut drained = [0u8; 64];
        // SAFETY: reads into a buffer of the given length; the pipe does not block.
        unsafe { libc::read(self.wake.as_raw_fd(), drained.as_mut_ptr().cast(), drained.len()) };
        let now = counts();
        let [interrupts, terminations, hangups] = [0, 1, 2].map(|i| now[i].wrapping_sub(self.seen[i]));
        self.seen = now;
        (interrupts, terminations + hangups)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let mut slot = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(installed) = slot.as_mut() else { return };
        installed.users -= 1;
        if installed.users > 0 {
            return;
        }
        for (previous, signal) in installed.previous.iter().zip(SIGNALS) {
            if let Some(previous) = previous {
                // SAFETY: gives back the action that sigaction itself returned for this signal.
                unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
            }
        }
        WAKE.store(-1, Ordering::SeqCst);
        *slot = None;
    }
}

fn counts() -> [u32; 3] {
    [0, 1, 2].map(|i| COUNTS[i].load(Ordering::SeqCst))
}

/// Installs the handler; `None` when the signal was ignored and is left so.
fn take_over(signal: libc::c_int) -> io::Result<Option<libc::sigaction>> {
    // SAFETY: all-zero bytes are a valid sigaction (default action, empty mask).
    let (mut ours, mut previous): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    // SAFETY: asks for the current action only.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if previous.sa_sigaction == libc::SIG_IGN {
        return Ok(None);
    }
    let handler: extern "C" fn(libc::c_int) = on_signal;
    ours.sa_sigaction = handler as *const () as libc::sighandler_t;
    ours.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe (atomics and write) and lives as long as the program.
    if unsafe { libc::sigaction(signal, &ours, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Some(previous))
}

extern "C" fn on_signal(signal: libc::c_int) {
    if let Some(index) = SIGNALS.iter().position(|&known| known == signal) {
        COUNTS[index].fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe, and on
    // a closed or full pipe it only fails.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(WAKE.load(Ordering::SeqCst), [0u8].as_ptr().cast(), 1);
        *errno = saved;
    }
}
