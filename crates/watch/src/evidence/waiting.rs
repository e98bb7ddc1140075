//! What the threads of a still job wait for, and who could wake them: time, the job itself, or somebody outside.
//!
//! The function of the kernel that a thread waits in is not enough: a server and an event that nobody will ever set both
//! wait in `ep_poll`. The arguments of its system call tell whether it waits without end, and the files that it waits at
//! tell who else holds the other end of them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::why::Waits;

/// Files of one wait that are looked at.
const MOST_FILES: usize = 256;
/// An epoll may wait at another one.
const DEEPEST: usize = 3;
/// Functions of the kernel in which one waits for another thread or process, where the system call is not told.
const INSIDE: [&str; 5] = ["futex", "do_wait", "pipe_", "unix_stream", "wait_for_unix"];

/// What could wake a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// Only another thread or process of the job.
    Inside,
    /// Time that passes, at the latest.
    Time,
    /// Nothing but time.
    Sleep,
    /// The network, a person, another program; or it is not known.
    Outside,
}

/// `None` where the kernel does not tell.
pub(crate) fn waits_of(root: i32, pids: &[i32]) -> Option<Waits> {
    let mut job = Job { pids, files: None };
    let (main, first) = job.threads(root)?.into_iter().next()?;
    let others: Vec<Wake> = pids
        .iter()
        .filter_map(|pid| Some((*pid, job.threads(*pid)?)))
        .flat_map(|(pid, threads)| threads.into_iter().skip(usize::from(pid == root)))
        .map(|(_, wake)| wake)
        .collect();
    Some(Waits {
        main,
        endless: first == Wake::Inside,
        sleeps: matches!(first, Wake::Time | Wake::Sleep) || others.contains(&Wake::Sleep),
        timed: others.contains(&Wake::Time),
        outside: first == Wake::Outside || others.contains(&Wake::Outside),
        threads: others.len() + 1,
    })
}

/// The processes of a job, and what their files are.
struct Job<'a> {
    pids: &'a [i32],
    files: Option<Files>,
}

/// What the whole job has open.
#[derive(Default)]
struct Files {
    /// Pipes by their numbers that some process of the job can write to, and that one can read.
    written: HashSet<u64>,
    read: HashSet<u64>,
    sockets: HashSet<u64>,
    /// All sockets of this machine that end on it.
    unix: HashSet<u64>,
}

/// A system call that a thread is in.
struct Call {
    number: i64,
    arguments: [u64; 6],
}

impl Job<'_> {
    /// Where each thread waits and what could wake it, the main one first.
    fn threads(&mut self, pid: i32) -> Option<Vec<(String, Wake)>> {
        let mut threads: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))
            .ok()?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        threads.sort_unstable_by_key(|thread| (*thread != pid, *thread));
        let mut found = Vec::new();
        for thread in threads {
            let function = fs::read_to_string(format!("/proc/{pid}/task/{thread}/wchan")).unwrap_or_default();
            let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
            let call = call.ok().and_then(|text| parse_call(&text));
            if function.is_empty() && call.is_none() {
                return None;
            }
            let wake = match &call {
                Some(call) => self.wake(pid, call),
                None if function.contains("nanosleep") => Wake::Sleep,
                None if INSIDE.iter().any(|name| function.contains(name)) => Wake::Inside,
                None => Wake::Outside,
            };
            let name = match (function.as_str(), call) {
                ("" | "0", Some(call)) => format!("system call {}", call.number),
                _ => function,
            };
            found.push((name, wake));
        }
        Some(found)
    }

    fn wake(&mut self, pid: i32, call: &Call) -> Wake {
        let [first, second, third, fourth, fifth, _] = call.arguments;
        let unless = |timed: bool, wake: &mut dyn FnMut() -> Wake| match timed {
            true => Wake::Time,
            false => wake(),
        };
        match call.number {
            libc::SYS_futex => unless(fourth != 0, &mut || Wake::Inside),
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Wake::Sleep,
            // Its children are asked themselves.
            libc::SYS_wait4 | libc::SYS_waitid => Wake::Inside,
            libc::SYS_epoll_pwait => {
                // The time is an `int`.
                unless(fourth as i32 >= 0, &mut || self.epoll(pid, first, 0))
            }
            libc::SYS_epoll_pwait2 => unless(fourth != 0, &mut || self.epoll(pid, first, 0)),
            libc::SYS_ppoll => match (third, second) {
                (0, _) => self.poll(pid, first, second),
                (_, 0) => Wake::Sleep,
                _ => Wake::Time,
            },
            libc::SYS_pselect6 => match (fifth, first) {
                (0, _) => self.select(pid, first, [second, third]),
                (_, 0) => Wake::Sleep,
                _ => Wake::Time,
            },
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
                self.file(pid, first, true, 0)
            }
            libc::SYS_write | libc::SYS_writev | libc::SYS_sendto | libc::SYS_sendmsg => {
                self.file(pid, first, false, 0)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => unless(fourth as i32 >= 0, &mut || self.epoll(pid, first, 0)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => match (third as i32, second) {
                (..0, _) => self.poll(pid, first, second),
                (_, 0) => Wake::Sleep,
                _ => Wake::Time,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => match (fifth, first) {
                (0, _) => self.select(pid, first, [second, third]),
                (_, 0) => Wake::Sleep,
                _ => Wake::Time,
            },
            _ => Wake::Outside,
        }
    }

    /// At the files that an epoll watches, as its `fdinfo` lists them.
    fn epoll(&mut self, pid: i32, file: u64, depth: usize) -> Wake {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{file}")) else {
            return Wake::Outside;
        };
        let watched: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok())
            .take(MOST_FILES)
            .collect();
        self.any(pid, watched.into_iter().map(|file| (file, true)), depth)
    }

    /// At the files of a `struct pollfd[]` in the memory of the process.
    fn poll(&mut self, pid: i32, address: u64, count: u64) -> Wake {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some(bytes) = self.memory(pid, address, count.min(MOST_FILES) * 8) else {
            return Wake::Outside;
        };
        let files: Vec<(u64, bool)> = bytes
            .chunks_exact(8)
            .filter_map(|entry| {
                let file = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
                let events = i16::from_ne_bytes([entry[4], entry[5]]);
                Some((u64::try_from(file).ok()?, events & libc::POLLOUT == 0))
            })
            .collect();
        match count > MOST_FILES {
            true => Wake::Outside,
            false => self.any(pid, files.into_iter(), 0),
        }
    }

    /// At the files of an `fd_set` to read and one to write.
    fn select(&mut self, pid: i32, count: u64, sets: [u64; 2]) -> Wake {
        let count = count.min(1024);
        let mut files = Vec::new();
        for (address, reads) in sets.into_iter().zip([true, false]).filter(|(set, _)| *set != 0) {
            let Some(bytes) = self.memory(pid, address, count.div_ceil(8) as usize) else {
                return Wake::Outside;
            };
            files.extend(
                (0..count)
                    .filter(|file| bytes[(file / 8) as usize] & (1 << (file % 8)) != 0)
                    .map(|file| (file, reads)),
            );
        }
        self.any(pid, files.into_iter(), 0)
    }

    /// Whoever can come first.
    fn any(&mut self, pid: i32, files: impl Iterator<Item = (u64, bool)>, depth: usize) -> Wake {
        files
            .map(|(file, reads)| self.file(pid, file, reads, depth))
            .max()
            .unwrap_or(Wake::Inside)
    }

    /// At one file, for something to read or for room to write.
    fn file(&mut self, pid: i32, file: u64, reads: bool, depth: usize) -> Wake {
        let Ok(link) = fs::read_link(format!("/proc/{pid}/fd/{file}")) else {
            return Wake::Outside;
        };
        let link = link.to_string_lossy();
        match link.as_ref() {
            // Only who has it open can make an event; and children are asked themselves.
            "anon_inode:[eventfd]" | "anon_inode:[pidfd]" => return Wake::Inside,
            "anon_inode:[timerfd]" => return Wake::Time,
            "anon_inode:[eventpoll]" if depth < DEEPEST => return self.epoll(pid, file, depth + 1),
            _ => {}
        }
        let pids = self.pids;
        let files = self.files.get_or_insert_with(|| Files::of(pids));
        let inside = if let Some(number) = numbered(&link, "pipe:[") {
            match reads {
                true => files.written.contains(&number),
                false => files.read.contains(&number),
            }
        } else if let Some(number) = numbered(&link, "socket:[") {
            // The two ends of a pair are made one after the other.
            let pair = [number.wrapping_add(1), number.wrapping_sub(1)];
            files.unix.contains(&number)
                && pair
                    .iter()
                    .any(|other| files.sockets.contains(other) && files.unix.contains(other))
        } else {
            false
        };
        match inside {
            true => Wake::Inside,
            false => Wake::Outside,
        }
    }

    fn memory(&self, pid: i32, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        memory.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }
}

impl Files {
    fn of(pids: &[i32]) -> Files {
        let mut files = Files::default();
        for pid in pids {
            let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                continue;
            };
            for entry in open.flatten() {
                let Ok(link) = fs::read_link(entry.path()) else {
                    continue;
                };
                let link = link.to_string_lossy();
                if let Some(number) = numbered(&link, "pipe:[") {
                    let name = entry.file_name();
                    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", name.to_string_lossy()));
                    match access(&info.unwrap_or_default()) {
                        Some(libc::O_RDONLY) => files.read.insert(number),
                        Some(libc::O_WRONLY) => files.written.insert(number),
                        _ => files.read.insert(number) | files.written.insert(number),
                    };
                } else if let Some(number) = numbered(&link, "socket:[") {
                    files.sockets.insert(number);
                }
            }
        }
        // They may live in a network of their own.
        if let Some(pid) = pids.first()
            && let Ok(text) = fs::read_to_string(format!("/proc/{pid}/net/unix"))
        {
            // Num RefCount Protocol Flags Type St Inode Path; a pair has no path.
            let inodes = text.lines().skip(1).filter_map(|line| {
                let mut words = line.split_whitespace().skip(6);
                let inode = words.next()?.parse().ok()?;
                words.next().is_none().then_some(inode)
            });
            files.unix = inodes.collect();
        }
        files
    }
}

/// 4026 of `pipe:[4026]`.
fn numbered(link: &str, kind: &str) -> Option<u64> {
    link.strip_prefix(kind)?.strip_suffix(']')?.parse().ok()
}

/// `O_RDONLY`, `O_WRONLY` or `O_RDWR` of the flags that `fdinfo` shows in octal.
fn access(info: &str) -> Option<i32> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_ACCMODE)
}

/// `232 0x3 0x7f… 0x2 0xffffffff 0x0 0x8 0x7ffd… 0x7f…`; `None` of a thread that runs.
fn parse_call(text: &str) -> Option<Call> {
    let mut words = text.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        let word = words.next()?;
        *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    }
    Some(Call { number, arguments })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn python(code: &str, stdin: Stdio) -> Option<Child> {
        let mut command = Command::new("python3");
        command
            .args(["-c", code])
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().ok()
    }

    /// What a program of Python waits for once it waits.
    fn check(code: &str, expected: fn(&Waits) -> bool) {
        let Some(mut child) = python(code, Stdio::piped()) else {
            return;
        };
        let pid = child.id().cast_signed();
        let end = Instant::now() + Duration::from_secs(20);
        let mut found = None;
        while Instant::now() < end && !found.as_ref().is_some_and(expected) {
            std::thread::sleep(Duration::from_millis(100));
            found = waits_of(pid, &[pid]);
        }
        let _ = child.kill();
        let _ = child.wait();
        let found = found.expect("the kernel tells of a child");
        assert!(expected(&found), "{code}\n{found:?}");
    }

    const HUNG: fn(&Waits) -> bool = |waits| waits.endless && !waits.sleeps && !waits.outside;
    const SLEEPS: fn(&Waits) -> bool = |waits| waits.sleeps && !waits.endless;
    const OUTSIDE: fn(&Waits) -> bool = |waits| waits.outside;

    #[test]
    fn a_wait_that_nobody_ends_is_told_from_one_that_somebody_may() {
        check(
            "import threading; threading.Lock().acquire() and threading.Event().wait()",
            HUNG,
        );
        check("import asyncio; asyncio.run(asyncio.Event().wait())", HUNG);
        check("import os; a, b = os.pipe(); os.read(a, 1)", HUNG);
        check("import time; time.sleep(1000)", SLEEPS);
        check("import threading; threading.Event().wait(1000)", SLEEPS);
        check("import asyncio; asyncio.run(asyncio.sleep(1000))", SLEEPS);
        check("import select; select.select([], [], [], 1000)", SLEEPS);
        check("import sys; sys.stdin.read()", OUTSIDE);
        check(
            "import asyncio\nasync def main():\n    s = await asyncio.start_server(print, '127.0.0.1', 0)\n    await s.serve_forever()\nasyncio.run(main())",
            OUTSIDE,
        );
        check(
            "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\nt = threading.Thread(target=s.accept)\nt.start()\nt.join()",
            OUTSIDE,
        );
        check(
            "import select, socket\ns = socket.create_server(('127.0.0.1', 0))\nselect.select([s], [], [])",
            OUTSIDE,
        );
        check(
            "import select, socket\ns = socket.create_server(('127.0.0.1', 0))\np = select.poll()\np.register(s)\np.poll()",
            OUTSIDE,
        );
        check(
            "import multiprocessing.connection as c, os\na, b = c.Pipe()\nc.wait([a])",
            HUNG,
        );
    }

    #[test]
    fn system_calls_are_read() {
        let call = parse_call("232 0x3 0x7f0 0x2 0xffffffffffffffff 0x0 0x8 0x7ffd 0x7f1\n").unwrap();
        assert_eq!((call.number, call.arguments[3]), (232, u64::MAX));
        for text in ["running", "", "-1 0x7ffd 0x7f1", "7 0x1 0x2", "7 1 2 3 4 5 6"] {
            assert!(parse_call(text).is_none(), "{text}");
        }
        assert_eq!(access("pos:\t0\nflags:\t0100001\n"), Some(libc::O_WRONLY));
        assert_eq!(numbered("pipe:[77]", "pipe:["), Some(77));
    }
}
