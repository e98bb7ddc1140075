//! Asking the program: `tidegate VERB … --json`, as a process with an end.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::site::Site;

/// So long one waits for those before.
const TURN: Duration = Duration::from_secs(30);
/// No answer is longer, and no complaint.
const LONGEST_ANSWER: u64 = 16 << 20;
const LONGEST_COMPLAINT: u64 = 64 << 10;

impl Site {
    /// Asks, waits for so long at the most, and gives what was answered: also where that is a no with an answer of its own.
    /// The verb comes first; what the words hold from outside stands behind an equals sign or `--`. Whoever no longer wants
    /// to know drops the question, and with it ends the program.
    pub(crate) async fn ask(&self, words: &[OsString], patience: Duration) -> Result<Value> {
        self.in_turn(&self.asking, words, patience).await
    }

    /// The same of what takes no reader of data and cannot wait for those that do: starting, stopping, a look at the machine.
    pub(crate) async fn order(&self, words: &[OsString], patience: Duration) -> Result<Value> {
        self.in_turn(&self.ordering, words, patience).await
    }

    async fn in_turn(&self, turns: &Semaphore, words: &[OsString], patience: Duration) -> Result<Value> {
        let turn = timeout(patience.min(TURN), turns.acquire()).await;
        let _turn = turn
            .map_err(|_| Error::Asked {
                message: "other questions are still being worked on".into(),
                hint: Some("try again in a moment".into()),
            })?
            .map_err(|_| Error::Bug)?;
        self.answer_of(words, patience).await
    }

    async fn answer_of(&self, words: &[OsString], patience: Duration) -> Result<Value> {
        let failed = |source| Error::Io {
            action: "started",
            path: self.options.program.clone(),
            source,
        };
        let (verb, rest) = words.split_first().ok_or(Error::Bug)?;
        let child = Command::new(&self.options.program)
            .arg("--home")
            .arg(&self.options.home)
            .arg(verb)
            .arg("--json")
            .args(rest)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut child = Asked(child);
        let (answer, complaint) = (child.0.stdout.take(), child.0.stderr.take());
        let asked = async {
            let (answer, complaint) =
                tokio::join!(most(answer, LONGEST_ANSWER), most(complaint, LONGEST_COMPLAINT));
            (answer, complaint, child.0.wait().await)
        };
        let Ok((answer, complaint, ended)) = timeout(patience, asked).await else {
            return Err(Error::Asked {
                message: format!("no answer within {} s", patience.as_secs()),
                hint: Some("ask on the command line, where there is no such limit".into()),
            });
        };
        let ended = ended.map_err(failed)?;
        // A no may come with an answer: a plan that does not fit.
        match serde_json::from_slice(&answer) {
            Ok(value) => Ok(value),
            Err(_) if ended.success() => Err(Error::Bug),
            Err(_) => Err(complained(&String::from_utf8_lossy(&complaint))),
        }
    }
}

/// A program that is asked to end when nobody waits for it any more. It is not killed, for it cleans up after itself.
struct Asked(Child);

impl Drop for Asked {
    fn drop(&mut self) {
        // There is a number as long as nobody has waited for its end.
        if let Some(pid) = self.0.id() {
            // SAFETY: a plain system call.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGTERM) };
        }
    }
}

async fn most(pipe: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before it broke is what there is.
        let _ = pipe.take(limit).read_to_end(&mut bytes).await;
    }
    bytes
}

/// The error and the hint, as the command line prints them; all of it where it prints something else.
fn complained(text: &str) -> Error {
    let after = |word: &str| {
        let lines = text.lines().rev();
        lines
            .filter_map(|line| line.trim_start().strip_prefix(word))
            .map(str::trim)
            .next()
    };
    Error::Asked {
        message: after("error:").unwrap_or(text.trim()).into(),
        hint: after("hint:").map(Into::into),
    }
}
