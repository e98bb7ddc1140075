//! Contact sheets: the verb `preview`, what a network will see of images, and the mistakes of one that `explain` shows.
//! Images are decoded in a supervised worker within the budget.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_memory::{Budget, resolve};
use tidegate_watch::{Update, supervise};

use crate::predict::model_folder;
use crate::train::unfinished;
use crate::worker::{Task, floor};
use crate::{Error, Job, Result, Session};

/// What a contact sheet shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Previewed {
    /// Where it was written.
    pub output: PathBuf,
    /// Images on it, and how often each is there: as it is, and as it is augmented.
    pub images: u64,
    pub versions: u64,
    /// Their files, row by row.
    pub files: Vec<String>,
}

/// Writes a contact sheet of what the network will see of a job's images, so many of them.
pub fn preview(
    session: &Session,
    job: &Job,
    output: &Path,
    rows: usize,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Previewed> {
    if !job.has_images() {
        return Err(Error::Usage {
            what: format!("{}: there are no images to show", job.data.name()),
            hint: "name a folder of images, or a table of their paths with --images COLUMN".into(),
        });
    }
    job.check()?;
    let budget = resolve(&session.host, job.memory)?;
    let task = Task::Preview {
        job: Box::new(job.clone()),
        output: output.into(),
        rows,
        budget: budget.bytes,
    };
    sheet(session, &task, &budget, output, watch)
}

/// Writes a contact sheet of the images that a model was most sure of and wrong about, beside the model unless there is
/// another place; `None` if it knows of none.
pub fn mistakes(
    session: &Session,
    reference: &str,
    output: Option<&Path>,
    top: usize,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Option<Previewed>> {
    let (folder, trained_in) = model_folder(session, reference)?;
    let report = tidegate_train::Report::load(&folder)?;
    if !report.mistakes.iter().any(|mistake| mistake.file.is_some()) {
        return Ok(None);
    }
    let budget = resolve(&session.host, trained_in)?;
    let output = output.map_or_else(|| folder.join("mistakes.png"), Path::to_path_buf);
    let task = Task::Mistakes {
        model: folder,
        output: output.clone(),
        top,
        budget: budget.bytes,
    };
    sheet(session, &task, &budget, &output, watch).map(Some)
}

fn sheet(
    session: &Session,
    task: &Task,
    budget: &Budget,
    output: &Path,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Previewed> {
    let mut child = task.child()?;
    child.limit_bytes = Some(floor(budget.bytes));
    let ended = supervise(&session.host, child, &mut |update| watch(budget, update))?;
    match (&ended.done, ended.exit_code()) {
        (Some(done), 0) => {
            let shown = serde_json::from_value(done.details.clone()).map_err(|error| Error::Job {
                path: output.into(),
                what: format!("the worker's report: {error}"),
            })?;
            Ok(Previewed {
                output: output.into(),
                ..shown
            })
        }
        _ => Err(unfinished(&ended, None)),
    }
}
