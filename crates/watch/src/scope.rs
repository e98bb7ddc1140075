//! A scope of the user's own systemd, for a supervisor that may make no cgroup where it is: a shell's scope belongs to
//! root, one that the user's manager makes is handed to the user.
//!
//! The program runs itself again inside: `systemd-run --scope` becomes the command that it is given, so process number,
//! terminal, pipes and folder stay what they were.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidegate_memory::{Cgroup, CgroupVersion, Host};

use crate::confine::Confinement;

/// How long the manager has to make a scope.
const PATIENCE: Duration = Duration::from_secs(5);
/// A limit for trying whether a cgroup can be made; nothing ever runs in it.
const TRIED_LIMIT: u64 = 1 << 30;

/// The systemd of the user, as far as it is needed.
#[derive(Debug, Clone)]
pub struct UserManager {
    /// The program `systemd-run`.
    pub systemd_run: PathBuf,
}

impl UserManager {
    /// The one that runs for the user of this process, if there is one.
    pub fn find() -> Option<UserManager> {
        let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
        if !runtime.join("systemd/private").exists() {
            return None;
        }
        let path = std::env::var_os("PATH")?;
        let mut found = std::env::split_paths(&path).map(|folder| folder.join("systemd-run"));
        let systemd_run = found.find(|program| program.is_file())?;
        Some(UserManager { systemd_run })
    }

    /// The command that runs `words` in a scope in which a supervisor can make its cgroups. `None` where it can do so
    /// already, where it is in such a scope, and where the manager makes none.
    pub fn own_scope(&self, host: &Host, words: &[OsString]) -> Option<Command> {
        let own = Cgroup::of(host, None).ok()?;
        let name = format!("tidegate-{}", std::process::id());
        if own.version != CgroupVersion::V2 || is_ours(&own.path) {
            return None;
        }
        if Confinement::create(host, &format!("try-{}", std::process::id()), Some(TRIED_LIMIT))
            .cgroup()
            .is_some()
        {
            return None;
        }
        // Newer ones put variables of their own into the arguments unless told not to; older ones do not know the word.
        let options = [Some("--expand-environment=no"), None];
        let works = |option: &Option<&str>| {
            let mut tried = self.scope(&format!("{name}-try"), *option);
            succeeds(tried.arg("true"))
        };
        let option = options.into_iter().find(works)?;
        let mut command = self.scope(&name, option);
        command.args(words);
        Some(command)
    }

    fn scope(&self, name: &str, option: Option<&str>) -> Command {
        let mut command = Command::new(&self.systemd_run);
        command.args(["--user", "--scope", "--quiet", "--collect"]);
        command.args(option);
        command.arg(format!("--unit={name}"));
        command.args(["--property=Delegate=yes", "--"]);
        command
    }
}

/// Whether a scope of ours is on the way to this cgroup.
fn is_ours(path: &Path) -> bool {
    let named = |part: &OsStr| {
        let part = part.to_string_lossy();
        part.starts_with("tidegate-") && part.ends_with(".scope")
    };
    path.iter().any(named)
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else {
        return false;
    };
    let give_up = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
