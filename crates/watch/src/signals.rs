//! Ctrl-C and its kin: counted, passed on in good order, and given back at the end.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::child::pipe;
use crate::error::{Error, Result};

/// Signals that end a job of ours in good order.
pub(crate) const STOPS: &[libc::c_int] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Signals that a foreign command gets as if it had been started without us.
pub(crate) const PASSED_ON: &[libc::c_int] = &[
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];
/// One more than the largest of them.
const NUMBERS: usize = 32;

/// How often each signal came, and how often from the terminal. The handler may do no more than count and write one
/// byte.
static COUNTS: [AtomicU32; NUMBERS] = [const { AtomicU32::new(0) }; NUMBERS];
static TYPED: [AtomicU32; NUMBERS] = [const { AtomicU32::new(0) }; NUMBERS];
static WAKE: AtomicI32 = AtomicI32::new(-1);
static INSTALLED: Mutex<Option<Installed>> = Mutex::new(None);

/// The handlers are the process's, so supervisors on several threads share one installation.
struct Installed {
    users: usize,
    /// What was there before; `None` where a signal was ignored and stays so.
    previous: Vec<(libc::c_int, Option<libc::sigaction>)>,
    read: Arc<OwnedFd>,
    /// Kept open for as long as the handler may write to it.
    _write: OwnedFd,
}

/// While this lives, the signals are counted instead of ending the process.
/// A signal that was ignored before (`nohup`, a background job of a script) stays ignored.
#[derive(Debug)]
pub(crate) struct Signals {
    wake: Arc<OwnedFd>,
    set: &'static [libc::c_int],
    seen: Vec<(u32, u32)>,
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) signal: libc::c_int,
    pub(crate) times: u32,
    /// From the terminal, which sends it to all of its foreground.
    pub(crate) typed: bool,
}

impl Signals {
    pub(crate) fn install(set: &'static [libc::c_int]) -> Result<Signals> {
        let mut slot = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| Error::Os {
            action: "prepare for Ctrl-C",
            source,
        };
        if slot.is_none() {
            let (read, write) = pipe(true).map_err(failed)?;
            WAKE.store(write.as_raw_fd(), Ordering::SeqCst);
            *slot = Some(Installed {
                users: 0,
                previous: Vec::new(),
                read: Arc::new(read),
                _write: write,
            });
        }
        let Some(installed) = slot.as_mut() else {
            return Err(failed(io::Error::from(io::ErrorKind::Other)));
        };
        installed.users += 1;
        for &signal in set {
            if !installed.previous.iter().any(|(known, _)| *known == signal) {
                installed
                    .previous
                    .push((signal, take_over(signal).map_err(failed)?));
            }
        }
        Ok(Signals {
            wake: installed.read.clone(),
            set,
            seen: set.iter().map(|signal| counts(*signal)).collect(),
        })
    }

    /// Becomes readable when a signal comes. Only a hint: another supervisor may have read it.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.wake.as_fd()
    }

    /// Signals since the last call.
    pub(crate) fn take(&mut self) -> Vec<Came> {
        let mut drained = [0u8; 64];
        // SAFETY: reads into a buffer of the given length; the pipe does not block.
        unsafe { libc::read(self.wake.as_raw_fd(), drained.as_mut_ptr().cast(), drained.len()) };
        let mut came = Vec::new();
        for (&signal, seen) in self.set.iter().zip(&mut self.seen) {
            let now = counts(signal);
            let times = now.0.wrapping_sub(seen.0);
            if times > 0 {
                let typed = now.1 != seen.1;
                came.push(Came { signal, times, typed });
            }
            *seen = now;
        }
        came
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
        for (signal, previous) in &installed.previous {
            if let Some(previous) = previous {
                // SAFETY: gives back the action that sigaction itself returned for this signal.
                unsafe { libc::sigaction(*signal, previous, std::ptr::null_mut()) };
            }
        }
        WAKE.store(-1, Ordering::SeqCst);
        *slot = None;
    }
}

fn counts(signal: libc::c_int) -> (u32, u32) {
    let at = signal.unsigned_abs() as usize % NUMBERS;
    (
        COUNTS[at].load(Ordering::SeqCst),
        TYPED[at].load(Ordering::SeqCst),
    )
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
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    ours.sa_sigaction = handler as *const () as libc::sighandler_t;
    ours.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
    // SAFETY: the handler is async-signal-safe (atomics and write) and lives as long as the program.
    if unsafe { libc::sigaction(signal, &ours, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Some(previous))
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let at = signal.unsigned_abs() as usize % NUMBERS;
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo_t that lives through the call.
    if !info.is_null() && unsafe { (*info).si_code } == libc::SI_KERNEL {
        TYPED[at].fetch_add(1, Ordering::SeqCst);
    }
    COUNTS[at].fetch_add(1, Ordering::SeqCst);
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe, and on
    // a closed or full pipe it only fails.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(WAKE.load(Ordering::SeqCst), [0u8].as_ptr().cast(), 1);
        *errno = saved;
    }
}
