//! The verb `why`: what is left of a run, and what it says.

use std::path::Path;

use serde::Serialize;
use tidegate_runs::{Judgement, Run};
use tidegate_watch::why::{Case, Verdict, case_of_log, case_of_pid, collect, judge, judge_told};

use crate::{Error, Result, Session};

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
    judge_and_keep(session, &run)
}

/// Explains a process of this machine that was not run under Tidegate.
pub fn explain_process(session: &Session, pid: i32) -> Explanation {
    let case = case_of_pid(&session.host, pid);
    Explanation {
        run: None,
        verdict: judge(&case),
        case,
    }
}

/// Explains a job of which only a log or an exit status is left.
pub fn explain_log(log: Option<&Path>, exit: Option<&str>) -> Result<Explanation> {
    let (case, told) = case_of_log(log, exit).map_err(|source| Error::Io {
        path: log.unwrap_or(Path::new("")).into(),
        what: "the log cannot be read",
        source,
    })?;
    Ok(Explanation {
        run: None,
        verdict: judge_told(&case, told),
        case,
    })
}

/// Explains a run, and notes the verdict in the store once it is over.
pub(crate) fn judge_and_keep(session: &Session, run: &Run) -> Result<Explanation> {
    let case = collect(&session.store, run);
    let verdict = judge(&case);
    if run.status.is_over() {
        let judgement = Judgement {
            cause: verdict.cause.as_str().into(),
            grade: verdict.grade.as_str().into(),
            sentence: verdict.sentence.clone(),
        };
        // A store that cannot be written is no reason not to explain.
        let _ = session.store.judge(&run.id, &judgement);
    }
    Ok(Explanation {
        run: Some(run.clone()),
        verdict,
        case,
    })
}
