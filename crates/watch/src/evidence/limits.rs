//! The limits that a process lives with.

/// Each limit by its name; `None` is unlimited. Empty where the process is gone.
pub(crate) fn limits(pid: i32) -> Vec<(String, Option<u64>)> {
    let named = [
        ("RLIMIT_AS", libc::RLIMIT_AS),
        ("RLIMIT_DATA", libc::RLIMIT_DATA),
        ("RLIMIT_STACK", libc::RLIMIT_STACK),
        ("RLIMIT_NOFILE", libc::RLIMIT_NOFILE),
        ("RLIMIT_NPROC", libc::RLIMIT_NPROC),
        ("RLIMIT_FSIZE", libc::RLIMIT_FSIZE),
        ("RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK),
        ("RLIMIT_CPU", libc::RLIMIT_CPU),
    ];
    let mut found = Vec::new();
    for (name, resource) in named {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: asks for a limit into a local structure and sets none.
        if unsafe { libc::prlimit(pid, resource, std::ptr::null(), &mut limit) } == 0 {
            let value = (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur);
            found.push((name.to_owned(), value));
        }
    }
    found
}

/// The tightest limits that any process of a job was seen with: a job may set its own.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    seen: Vec<(String, Option<u64>)>,
}

impl Limits {
    pub(crate) fn look(&mut self, pids: impl Iterator<Item = i32>) {
        for (name, limit) in pids.flat_map(limits) {
            match self.seen.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = [*known, limit].into_iter().flatten().min(),
                None => self.seen.push((name, limit)),
            }
        }
    }

    pub(crate) fn tightest(self) -> Vec<(String, Option<u64>)> {
        self.seen
    }
}
