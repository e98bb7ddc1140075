//! Running a program of the corpus under `tidegate run`, and asking `tidegate why`.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::header::{After, Program};

/// No program takes half of this, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Limits of the process itself, and limits of a container around it.
const INSIDE: [&str; 3] = ["as", "nofile", "cpu"];
const AROUND: [&str; 5] = ["shm", "disk", "pids", "memory", "swapped"];
/// What of it needs a controller of cgroup v1.
const CONTROLLERS: [(&str, &str); 3] = [("pids", "pids"), ("memory", "memory"), ("swapped", "memory")];

/// What became of a program.
#[derive(Debug)]
pub(crate) struct Watched {
    /// As a shell shows it: 128 and the number of the signal that ended it.
    pub(crate) exit: i32,
    pub(crate) verdict: Value,
    pub(crate) run: Value,
    /// Processes and cgroups that are still there.
    pub(crate) left: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unwatched {
    /// This machine does not have what the program needs.
    Lacking(String),
    /// It was run, and something went wrong with that.
    Broken(String),
}

/// Where things are.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The folder of the corpus.
    pub(crate) corpus: PathBuf,
    /// The interpreter itself and not a script around it, where there is one.
    pub(crate) python: Option<PathBuf>,
    /// For what is built and what is written: on a disk, for what is written to a tmpfs counts as memory.
    pub(crate) scratch: PathBuf,
}

/// Runs a program to its end.
pub(crate) fn watch(tools: &Tools, program: &Program) -> Result<Watched, Unwatched> {
    if let Some(what) = lacking(program) {
        return Err(Unwatched::Lacking(what));
    }
    let folder = tempfile::tempdir_in(&tools.scratch).unwrap();
    let (home, work) = (folder.path().join("home"), folder.path().join("work"));
    fs::create_dir(&work).unwrap();
    let mut command = command(tools, program)?;
    command.current_dir(&work).env("TIDEGATE_HOME", &home);
    // Programs may train, too.
    let tidegate = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let folders = tools.python.as_deref().into_iter().chain([tidegate]);
    let folders = folders.filter_map(Path::parent).map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
    command.env("PATH", path.unwrap());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Tests run in the background or under nohup inherit signals that are ignored, and so would the program.
    // SAFETY: between fork and exec, signal is one of the calls that are allowed.
    unsafe {
        command.pre_exec(|| {
            for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                libc::signal(number, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    let mut child = command
        .spawn()
        .map_err(|error| Unwatched::Broken(error.to_string()))?;
    let spoke = swallow(&mut child);
    if let Some(after) = &program.after
        && spoke.recv_timeout(PATIENCE).is_ok()
    {
        std::thread::sleep(Duration::from_secs_f64(after.seconds));
        if let Err(why) = send(child.id().cast_signed(), after) {
            stop(&mut child);
            return Err(Unwatched::Broken(why));
        }
    }
    let status = wait(&mut child).map_err(Unwatched::Broken)?;
    let told = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["why", "--json"])
        .current_dir(&work)
        .env("TIDEGATE_HOME", &home)
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&told.stdout)
        .map_err(|error| Unwatched::Broken(format!("{error}: {}", String::from_utf8_lossy(&told.stderr))))?;
    let left = left_behind(&work, &answer["run"]);
    let exit = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(Watched {
        exit: exit.unwrap_or(-1),
        verdict: answer["verdict"].clone(),
        run: answer["run"].clone(),
        left,
    })
}

/// What this machine does not have.
fn lacking(program: &Program) -> Option<String> {
    let is_there = |command: &str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(command).is_file())
    };
    let limited = INSIDE.iter().any(|key| program.limit(key).is_some());
    let commands = program.needs.iter().map(String::as_str);
    let mut commands = commands
        .chain(limited.then_some("prlimit"))
        .chain(program.is("sh").then_some("bash"));
    if let Some(command) = commands.find(|command| !is_there(command)) {
        return Some(command.into());
    }
    // SAFETY: geteuid cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let around = AROUND.iter().any(|key| program.limit(key).is_some());
    if around && !is_root {
        return Some("root to set its limits".into());
    }
    let missing = CONTROLLERS.into_iter().find(|(key, controller)| {
        program.limit(key).is_some() && !Path::new("/sys/fs/cgroup").join(controller).is_dir()
    });
    missing.map(|(_, controller)| format!("{controller} controller of cgroup v1"))
}

/// `within … -- tidegate run … -- prlimit … python3 program.py`
fn command(tools: &Tools, program: &Program) -> Result<Command, Unwatched> {
    let limits = |keys: &[&str], before: &str, after: &str| -> Vec<String> {
        let known = keys.iter().filter_map(|key| Some((key, program.limit(key)?)));
        known
            .map(|(key, limit)| format!("{before}{key}={limit}{after}"))
            .collect()
    };
    let mut words: Vec<String> = Vec::new();
    let around = limits(&AROUND, "", "");
    if !around.is_empty() {
        words.push(tools.corpus.join("within").display().to_string());
        words.extend(around);
        words.push("--".into());
    }
    words.extend([env!("CARGO_BIN_EXE_tidegate"), "run"].map(String::from));
    if let Some(memory) = &program.memory {
        words.extend(["--memory".into(), memory.clone()]);
    }
    words.push("--".into());
    let inside = limits(&INSIDE, "--", ":");
    if !inside.is_empty() {
        words.push("prlimit".into());
        words.extend(inside);
    }
    let path = program.path.display().to_string();
    match program.path.extension().and_then(|extension| extension.to_str()) {
        Some("py") => {
            let missing = || Unwatched::Lacking("python3".into());
            let python = tools.python.as_ref().ok_or_else(missing)?;
            words.extend([python.display().to_string(), path]);
        }
        Some("sh") => words.extend(["bash".into(), path]),
        _ => words.push(build(tools, program)?.display().to_string()),
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}

/// Compiles a program where it is newer than its binary.
fn build(tools: &Tools, program: &Program) -> Result<PathBuf, Unwatched> {
    let compiler = match program.path.extension().and_then(|extension| extension.to_str()) {
        Some("c") => "gcc",
        Some("cpp") => "g++",
        _ => "rustc",
    };
    let binary = tools.scratch.join("bin").join(program.path.file_stem().unwrap());
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    if changed(&binary).is_some_and(|built| Some(built) > changed(&program.path)) {
        return Ok(binary);
    }
    fs::create_dir_all(binary.parent().unwrap()).unwrap();
    // Not optimized: a program that does nothing of use would be optimized away.
    let done = Command::new(compiler)
        .args(["-g", "-o"])
        .args([&binary, &program.path])
        .output()
        .map_err(|_| Unwatched::Lacking(compiler.into()))?;
    match done.status.success() {
        true => Ok(binary),
        false => panic!("{}: {}", program.name(), String::from_utf8_lossy(&done.stderr)),
    }
}

/// Reads what a program says, and tells of the first piece of it.
fn swallow(child: &mut Child) -> Receiver<()> {
    let (sender, receiver) = channel();
    let mut output = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while output.read(&mut piece).is_ok_and(|n_bytes| n_bytes > 0) {
            let _ = sender.send(());
        }
    });
    receiver
}

fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    stop(child);
    Err(format!("did not end within {PATIENCE:?}"))
}

/// Asked first, so that it can end what it runs.
fn stop(child: &mut Child) {
    // SAFETY: kill has no memory effects; it is our own child, not waited for yet.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    std::thread::sleep(Duration::from_secs(1));
    let _ = child.kill();
    let _ = child.wait();
}

fn send(run: i32, after: &After) -> Result<(), String> {
    let number = match after.signal.as_str() {
        "KILL" => libc::SIGKILL,
        "TERM" => libc::SIGTERM,
        "INT" => libc::SIGINT,
        "HUP" => libc::SIGHUP,
        other => panic!("{other} is no signal of the corpus"),
    };
    let mut pid = run;
    for _ in 0..after.depth {
        let end = Instant::now() + Duration::from_secs(5);
        pid = loop {
            if let Some(child) = child_of(pid) {
                break child;
            }
            if Instant::now() > end {
                return Err(format!(
                    "process {pid} has no child to send SIG{} to",
                    after.signal
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
    }
    // SAFETY: kill has no memory effects; the process is one that we started, or below it.
    unsafe { libc::kill(pid, number) };
    Ok(())
}

/// The first child of a process.
fn child_of(parent: i32) -> Option<i32> {
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold blanks and parentheses; the parent is the second word after it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    processes().filter(|pid| parent_of(*pid) == Some(parent)).min()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes that work there and the cgroup of the run, where they are not gone within half a second.
fn left_behind(work: &Path, run: &Value) -> Vec<String> {
    let end = Instant::now() + Duration::from_millis(500);
    loop {
        let working =
            processes().filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == work));
        let mut left: Vec<String> = working.map(|pid| format!("process {pid}")).collect();
        let group = run["cgroup"].as_str().filter(|group| Path::new(group).exists());
        left.extend(group.map(|group| format!("cgroup {group}")));
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
