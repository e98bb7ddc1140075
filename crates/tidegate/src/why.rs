//! The verb `why`: what is left of a run, and what it says.

use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use tidegate_memory::Host;
use tidegate_runs::{Judgement, Run, keep};
use tidegate_watch::why::{
    Case, Facts, ForeignJob, Verdict, case_of_job, collect, explain_exit, judge, judge_told,
};

use crate::{Error, Result, Session};

/// Another version may judge otherwise.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a run ended.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// `None` of a job that was not run under Tidegate.
    pub run: Option<Run>,
    pub verdict: Verdict,
    #[serde(skip)]
    pub case: Case,
}

/// Explains a run of the store.
pub fn explain_run(session: &Session, reference: &str) -> Result<Explanation> {
    let run = session.store.find(reference)?;
    judge_and_keep(session, &run, None)
}

/// Explains a job that was not run under Tidegate, by its number, its log and its exit status.
pub fn explain_foreign(job: &ForeignJob<'_>) -> Result<Explanation> {
    if let Some(exit) = job.exit.filter(|exit| explain_exit(exit).is_none()) {
        return Err(Error::Usage {
            what: format!("{exit:?} is no exit status that is known"),
            hint: "as a shell, a scheduler or a container tells it: 137, 0:125, SIGSEGV, OOMKilled, OUT_OF_MEMORY"
                .into(),
        });
    }
    let (case, told) = case_of_job(&Host::live(), job).map_err(|source| {
        let path = job.log.unwrap_or(Path::new(""));
        match source.kind() {
            ErrorKind::NotFound | ErrorKind::IsADirectory => Error::Usage {
                what: format!("{}: the log cannot be read: {source}", path.display()),
                hint: "--log takes one file, or - for what comes through a pipe".into(),
            },
            _ => Error::Io {
                path: path.into(),
                what: "the log cannot be read",
                source,
            },
        }
    })?;
    Ok(Explanation {
        run: None,
        verdict: judge_told(&case, told),
        case,
    })
}

/// Explains a run, and once it is over notes the verdict in the store, and keeps it whole beside the run for the page.
/// Whoever has seen it end knows what a full disk would not take.
pub(crate) fn judge_and_keep(session: &Session, run: &Run, seen: Option<&Facts>) -> Result<Explanation> {
    let mut case = collect(&session.store, run);
    if let Some(seen) = seen.filter(|_| case.facts.exit.is_none()) {
        case.facts = seen.clone();
    }
    let verdict = judge(&case);
    if run.status.is_over() {
        let judgement = Judgement {
            cause: verdict.cause.as_str().into(),
            grade: verdict.grade.as_str().into(),
            sentence: verdict.sentence.clone(),
        };
        // A store that cannot be written is no reason not to explain.
        let _ = session.store.judge(&run.id, &judgement);
        let _ = keep(&session.store.run_dir(&run.id).why(), VERSION, &verdict);
    }
    Ok(Explanation {
        run: Some(run.clone()),
        verdict,
        case,
    })
}
