//! Running a small shell program under the supervisor, and looking for what it left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_runs::{FlightRecord, Stream};
use tidegate_watch::{Ended, Event, Job, OverLine, Update, supervise};

/// How a shell program speaks events: `say '{"event":…}'`.
pub(crate) const SPEAK: &str = r#"ulimit -c 0; say() { echo "$1" > "$EVENTS"; }
EVENTS=/dev/fd/$2; say '{"event":"hello","version":1,"pid":1}'
"#;
pub(crate) const DONE: &str = r#"say '{"event":"done","metric_name":"auc","metric_value":0.9}'"#;

/// A worker of ours: it says hello, then runs the script.
pub(crate) fn worker(script: &str) -> Job<'static> {
    let mut job = Job::new("/bin/sh", ["-c", &format!("{SPEAK}{script}"), "sh"]);
    job.limit_bytes = Some(64 << 20);
    job.sample_every = Duration::from_millis(20);
    job
}

/// A command that knows nothing of us.
pub(crate) fn foreign(script: &str) -> Job<'static> {
    let mut job = worker("");
    job.args = ["-c", script, "sh"].map(Into::into).to_vec();
    job.events = false;
    job
}

/// Everything the caller heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) pid: i32,
    pub(crate) containment: String,
    pub(crate) cgroup: Option<PathBuf>,
    pub(crate) events: Vec<Event>,
    pub(crate) output: Vec<(Stream, String)>,
    pub(crate) samples: Vec<FlightRecord>,
    pub(crate) over_line: Option<OverLine>,
}

impl Heard {
    pub(crate) fn add(&mut self, update: Update<'_>) {
        match update {
            Update::Started {
                pid,
                containment,
                cgroup,
                ..
            } => {
                self.pid = pid;
                self.containment = containment.to_string();
                self.cgroup = cgroup.map(Path::to_path_buf);
            }
            Update::Event(event) => self.events.push(event.clone()),
            Update::Sample(record) => self.samples.push(*record),
            Update::Output { stream, line } => self.output.push((stream, line.to_string())),
            Update::Stopping { .. } | Update::NearLine { .. } => {}
            Update::OverLine(over) => self.over_line = Some(over),
        }
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let text = |event: &'_ Event| matches!(event, Event::Warning { .. });
        let warnings = self.events.iter().filter(|event| text(event));
        warnings
            .map(|event| {
                if let Event::Warning { text } = event {
                    text.as_str()
                } else {
                    ""
                }
            })
            .collect()
    }

    pub(crate) fn check_nothing_left(&self) {
        check_nothing_left(self.pid, self.cgroup.as_deref());
    }
}

/// Supervises the job, and checks that it left nothing behind.
pub(crate) fn run(job: Job<'_>) -> (Ended, Heard) {
    run_with(job, |_| {})
}

pub(crate) fn run_with(job: Job<'_>, mut also: impl FnMut(&Update<'_>)) -> (Ended, Heard) {
    let mut heard = Heard::default();
    let ended = supervise(&Host::live(), job, &mut |update| {
        also(&update);
        heard.add(update);
    })
    .unwrap();
    heard.check_nothing_left();
    (ended, heard)
}

/// No living process of the worker's group, no cgroup. A killed process takes a moment to go.
pub(crate) fn check_nothing_left(pid: i32, cgroup: Option<&Path>) {
    assert!(pid > 1);
    if let Some(cgroup) = cgroup {
        assert!(!cgroup.exists(), "{} is left behind", cgroup.display());
    }
    wait_until("the process group is gone", || {
        living(|stat| stat.group == pid).is_empty()
    });
}

pub(crate) struct Stat {
    pub(crate) group: i32,
    pub(crate) command: String,
}

/// The processes, zombies aside, that fit.
pub(crate) fn living(fits: impl Fn(&Stat) -> bool) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let mut fields = rest.split(' ');
        let state = fields.next().unwrap_or("Z");
        let group = fields.nth(1).and_then(|group| group.parse().ok()).unwrap_or(0);
        let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if state != "Z" && state != "X" && fits(&Stat { group, command }) {
            found.push(pid);
        }
    }
    found
}

/// A program that sleeps and can be found by the unusual number of seconds.
pub(crate) fn sleepers(seconds: &str) -> Vec<i32> {
    let command = format!("sleep\0{seconds}\0");
    living(|stat| stat.command.ends_with(&command))
}

pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(10);
    while !reached() {
        assert!(Instant::now() < patience, "waited 10 s and not yet: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: kill has no memory effects; the tests signal only processes that they started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}
