//! Running `tidegate` in a folder of its own, and looking at what it said and left behind.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::redact::redact;

/// A folder to work in, with a home of its own. Everything the program leaves in it is looked at after each
/// command, and on the way out.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) home: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::Builder::new()
            .prefix("tidegate-cli-")
            .tempdir()
            .unwrap();
        let home = folder.path().join("home");
        Place { folder, home }
    }

    /// A place with one table in it, `data.csv`.
    pub(crate) fn with(table: impl AsRef<[u8]>) -> Place {
        let place = Place::new();
        place.write("data.csv", table);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The command, not yet started. Words are separated by blanks; there is no shell.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        self.command_of(arguments.split_whitespace())
    }

    pub(crate) fn command_of(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TIDEGATE_HOME", &self.home)
            .env_remove("SLURM_MEM_PER_NODE")
            .env_remove("SLURM_MEM_PER_CPU")
            .stdin(Stdio::null());
        // Tests run in the background or under nohup inherit signals that are ignored, and so would the command.
        // SAFETY: between fork and exec, signal is one of the calls that are allowed.
        unsafe {
            command.pre_exec(|| {
                for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(number, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &str) -> Answer {
        self.finish(self.spawn(arguments))
    }

    /// The same with arguments that hold blanks or nothing.
    pub(crate) fn run_words(&self, arguments: &[&str]) -> Answer {
        self.finish(start(&mut self.command_of(arguments)))
    }

    /// Starts the command with its output caught.
    pub(crate) fn spawn(&self, arguments: &str) -> Child {
        start(&mut self.command(arguments))
    }

    /// Waits for a command that was started here.
    pub(crate) fn finish(&self, child: Child) -> Answer {
        let parent = child.id();
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
        let answer = Answer {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
            hidden: self.hidden(),
        };
        assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
        self.check_nothing_left(parent);
        answer
    }

    /// Runs the command and expects it to succeed.
    pub(crate) fn ok(&self, arguments: &str) -> Answer {
        let answer = self.run(arguments);
        assert_eq!(answer.code, Some(0), "tidegate {arguments}\n{}", answer.stderr);
        answer
    }

    /// Runs the command, expects it to succeed and to print JSON.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let answer = self.ok(&format!("{arguments} --json"));
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stdout))
    }

    /// What a command says as JSON while another one is at work here, which is left alone.
    pub(crate) fn look(&self, arguments: &str) -> Value {
        let output = self.command(&format!("{arguments} --json")).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The identifiers of all runs.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    /// The weights of a run, as bytes.
    pub(crate) fn weights(&self, id: &str) -> Vec<u8> {
        fs::read(self.home.join("runs").join(id).join("model/weights.safetensors")).unwrap()
    }

    /// The trees of a run, as bytes.
    pub(crate) fn forest(&self, id: &str) -> Vec<u8> {
        fs::read(self.home.join("runs").join(id).join("model/forest.json")).unwrap()
    }

    /// No process that works here, no cgroup of these runs or of this parent, no half-written file.
    fn check_nothing_left(&self, parent: u32) {
        wait_until("no process is left", || self.processes().is_empty());
        let mut ours: Vec<String> = self.run_ids().iter().map(|id| format!("tidegate-{id}")).collect();
        ours.push(format!("tidegate-p{parent}-"));
        ours.push(format!("tidegate-supervisor-{parent}"));
        let left = |name: &str| ours.iter().any(|ours| name.starts_with(ours.as_str()));
        let groups: Vec<String> = cgroups().into_iter().filter(|name| left(name)).collect();
        assert!(groups.is_empty(), "cgroups left behind: {groups:?}");
        for path in walk(self.folder.path()) {
            let half = [".part", ".new", ".old", ".tmp"]
                .iter()
                .any(|end| path.to_string_lossy().ends_with(end));
            assert!(!half, "{} is left behind", path.display());
        }
    }

    /// Living processes of our program whose working folder is this one.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let here = fs::canonicalize(self.folder.path()).unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == here))
            .collect()
    }

    /// What changes from place to place and from run to run, and the word that stands for it.
    fn hidden(&self) -> Vec<(String, &'static str)> {
        let mut hidden: Vec<(String, &'static str)> =
            self.run_ids().into_iter().map(|id| (id, "[run]")).collect();
        hidden.push((self.folder.path().display().to_string(), "[dir]"));
        hidden
    }
}

fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a command answered. Shown, it is fit for a snapshot: exit code, standard output, standard error, with
/// paths, runs, sizes, times and the machine's powers replaced.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    hidden: Vec<(String, &'static str)>,
}

impl Answer {
    /// The lines of standard error from the error on, the way a person sees them last.
    pub(crate) fn error(&self) -> String {
        let at = self.stderr.find("error: ").unwrap_or(self.stderr.len());
        let text = redact(&self.stderr[at..], &self.hidden);
        format!("exit {}\n{}", self.code.unwrap_or(-1), text.trim_end())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {}", self.code.unwrap_or(-1))?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}\n{}", redact(text, &self.hidden).trim_end())?;
            }
        }
        Ok(())
    }
}

/// The names of the cgroups made by tidegate, below our own and its ancestors.
pub(crate) fn cgroups() -> Vec<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut names = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            controllers if controllers.split(',').any(|name| name == "memory") => &["/sys/fs/cgroup/memory"],
            _ => continue,
        };
        for root in roots {
            let folder = Path::new(root).join(path.trim_start_matches('/'));
            for ancestor in folder
                .ancestors()
                .take_while(|ancestor| ancestor.starts_with(root))
            {
                let entries = fs::read_dir(ancestor).into_iter().flatten().flatten();
                let found = entries.filter_map(|entry| entry.file_name().into_string().ok());
                names.extend(found.filter(|name| name.starts_with("tidegate-")));
            }
        }
    }
    names
}

/// Every file and folder below.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            found.push(entry.path());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    found
}

/// The machine may be slow: what is waited for has ten seconds, or a minute where it does real work.
pub(crate) fn wait_until(what: &str, reached: impl FnMut() -> bool) {
    wait_for(what, Duration::from_secs(10), reached);
}

pub(crate) fn wait_for(what: &str, patience: Duration, mut reached: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !reached() {
        assert!(Instant::now() < end, "waited {patience:?} and not yet: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
