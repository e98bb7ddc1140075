//! The worker's side of a request to stop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn ask_to_stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// From now on SIGTERM and SIGINT set the flag instead of ending the process: the worker saves what it has,
/// says so and ends. A request that came before, while the supervisor kept them blocked, sets it at once.
pub fn stop_flag() -> io::Result<&'static AtomicBool> {
    let done = |answer: libc::c_int| match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: all-zero bytes are a valid sigaction and sigset_t; the handler only stores to an atomic.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ask_to_stop as *const () as libc::sighandler_t;
        // Reads and writes that it interrupts go on by themselves.
        action.sa_flags = libc::SA_RESTART;
        let mut stops: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut stops);
        for signal in [libc::SIGTERM, libc::SIGINT] {
            done(libc::sigaction(signal, &action, std::ptr::null_mut()))?;
            libc::sigaddset(&mut stops, signal);
        }
        done(libc::pthread_sigmask(
            libc::SIG_UNBLOCK,
            &stops,
            std::ptr::null_mut(),
        ))?;
    }
    Ok(&STOP)
}
