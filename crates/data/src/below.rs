//! Where data may be, for whoever answers to somebody else: below some folders, whatever names, links and tables say.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::source::without_password;
use crate::{Error, Result};

/// Folders that all data must be below; anywhere, if there are none.
///
/// What a path really is counts, so that no link leads out, and it is held against the folders before the disk tells
/// anything of it: of what lies outside nobody learns whether it is there. Whoever may change links while data is read
/// has the right to read it anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Below {
    /// As they really are.
    pub folders: Vec<PathBuf>,
    /// A folder that is no data wherever it is: the one that runs are kept in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<PathBuf>,
}

/// What lies outside of the folders, hidden in them, or where runs are kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: lies outside of the folders that data may come from", path.display())]
pub struct Outside {
    pub path: PathBuf,
    pub folders: Vec<PathBuf>,
}

impl Below {
    pub fn new(folders: &[PathBuf], without: Option<&Path>) -> Result<Below> {
        let real = |path: &PathBuf| path.canonicalize().map_err(|source| Error::of_path(path, source));
        Ok(Below {
            folders: folders.iter().map(real).collect::<Result<_>>()?,
            // What is not there yet has nothing in it.
            without: without.and_then(|path| path.canonicalize().ok()),
        })
    }

    pub fn is_anywhere(&self) -> bool {
        self.folders.is_empty()
    }

    /// Whether a path may be read, or found not to be there.
    pub fn holds(&self, path: &Path) -> bool {
        self.is_anywhere() || real(path).is_some_and(|real| self.holds_real(&real))
    }

    /// Refuses a path that lies outside.
    pub fn check(&self, path: &Path) -> Result<()> {
        match self.holds(path) {
            true => Ok(()),
            false => Err(self.refused(path)),
        }
    }

    pub(crate) fn refused(&self, path: &Path) -> Error {
        Error::Outside(Outside {
            path: without_password(path),
            folders: self.folders.clone(),
        })
    }

    fn holds_real(&self, path: &Path) -> bool {
        let is_hidden = |part: Component| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let mut below = self
            .folders
            .iter()
            .filter_map(|folder| path.strip_prefix(folder).ok());
        below.any(|rest| !rest.components().any(is_hidden))
            && !self
                .without
                .as_ref()
                .is_some_and(|folder| path.starts_with(folder))
    }
}

/// What a path really is, as far as it is there; `None` where nobody can say.
fn real(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let (there, real) = absolute
        .ancestors()
        .find_map(|there| Some((there, there.canonicalize().ok()?)))?;
    let rest = absolute.strip_prefix(there).ok()?;
    // What is not there leads nowhere, and not back either.
    let is_name = |part: Component| matches!(part, Component::Normal(_));
    rest.components().all(is_name).then(|| real.join(rest))
}

impl Outside {
    pub(crate) fn hint(&self) -> String {
        let folders: Vec<String> = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        format!(
            "data may come from {}, and so must all that it names or links to",
            folders.join(", ")
        )
    }
}
