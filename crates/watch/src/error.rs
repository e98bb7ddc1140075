//! What can go wrong before there is a worker to speak of, and with closing what others left behind.

use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {}", program.display())]
    Spawn {
        program: PathBuf,
        #[source]
        source: io::Error,
    },

    #[error("cannot {action}")]
    Os {
        action: &'static str,
        #[source]
        source: io::Error,
    },

    #[error("file descriptor {fd} is no pipe to a supervisor")]
    EventsFd {
        fd: i32,
        #[source]
        source: io::Error,
    },

    #[error("cannot record the run")]
    Record {
        #[source]
        source: tidegate_runs::Error,
    },
}

impl From<tidegate_runs::Error> for Error {
    fn from(source: tidegate_runs::Error) -> Error {
        Error::Record { source }
    }
}

impl Error {
    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Spawn { source, program } => match source.kind() {
                io::ErrorKind::NotFound => {
                    Some(format!("is {} installed and on the PATH?", program.display()))
                }
                io::ErrorKind::PermissionDenied => Some(format!("chmod +x {}", program.display())),
                _ => None,
            },
            Error::Os { source, .. } => match source.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE) => {
                    Some("raise the limit of open files: ulimit -n 4096".into())
                }
                Some(libc::EAGAIN | libc::ENOMEM) => Some("the machine is out of processes or memory".into()),
                _ => None,
            },
            Error::EventsFd { .. } => Some("this command is started by `tidegate train`, not by hand".into()),
            Error::Record { source } => source.hint(),
        }
    }
}
