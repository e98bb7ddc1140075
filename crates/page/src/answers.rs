//! What the program is asked about a run once, and kept beside the run: the verdict, what the model relies on, pictures.
//!
//! Nobody waits long for a page: who asks first starts the question, and it goes on when they have left.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_runs::{RunDir, keep, kept};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::site::Site;

/// What was kept by another version is asked for again.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A question that takes longer has no answer for a page.
const PATIENCE: Duration = Duration::from_secs(120);
/// A question without an answer is not asked again for so long.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// Why it ended.
    Why,
    /// What its model relies on.
    Explained,
    /// A contact sheet of its images, and one of what its model was wrong about.
    Samples,
    Mistakes,
}

impl Question {
    fn kept_at(self, dir: &RunDir) -> PathBuf {
        match self {
            Question::Why => dir.why(),
            Question::Explained => dir.explained(),
            Question::Samples => dir.samples().with_extension("json"),
            Question::Mistakes => dir.mistakes().with_extension("json"),
        }
    }

    /// None of these is told the roots of the page: nobody who asks names a file. `why` and `explain` read what is kept of
    /// the run, the sheets the images that it learned from; where those had to be, the job that `preview` is given says.
    fn words(self, id: &str, dir: &RunDir) -> Vec<OsString> {
        match self {
            Question::Why => vec!["why".into(), id.into()],
            Question::Explained => vec!["explain".into(), id.into()],
            Question::Samples => vec![
                "preview".into(),
                dir.job().into(),
                "--output".into(),
                dir.samples().into(),
            ],
            Question::Mistakes => vec![
                "explain".into(),
                id.into(),
                "--output".into(),
                dir.mistakes().into(),
            ],
        }
    }

    /// Of all that the program says, what is kept.
    fn of_answer(self, mut answer: Value) -> Value {
        let part = match self {
            Question::Why => "verdict",
            Question::Mistakes => "sheet",
            Question::Explained | Question::Samples => return answer,
        };
        answer.get_mut(part).map(Value::take).unwrap_or_default()
    }
}

/// How a question stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nobody has asked, or it is answered.
    No,
    Now,
    /// It has no answer, and why.
    Refused(String),
}

type Told = std::result::Result<Arc<Value>, (String, Option<String>)>;
type Waiting = watch::Receiver<Option<Told>>;

/// Questions that are on their way, and those that had no answer.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    asked: Mutex<HashMap<(String, Question), (Waiting, Instant)>>,
}

impl Site {
    /// What was kept, without asking anybody.
    pub(crate) async fn kept_answer(
        self: &Arc<Site>,
        id: &str,
        question: Question,
    ) -> Result<Option<Arc<Value>>> {
        let id = id.to_owned();
        self.read(move |store| {
            let path = question.kept_at(&store.run_dir(&id));
            Ok(kept::<Value>(&path, VERSION).map(Arc::new))
        })
        .await
    }

    /// The answer, if it is there or comes in time; `None` where it is still to come. `id` is that of a run of the store.
    pub(crate) async fn answer(
        self: &Arc<Site>,
        id: &str,
        question: Question,
        patience: Duration,
    ) -> Result<Option<Arc<Value>>> {
        if let Some(kept) = self.kept_answer(id, question).await? {
            return Ok(Some(kept));
        }
        let mut waiting = self.waiting(id, question);
        let told = timeout(patience, waiting.wait_for(Option::is_some)).await;
        let Ok(told) = told else { return Ok(None) };
        match told.map_err(|_| Error::Bug)?.clone() {
            Some(Ok(answer)) => Ok(Some(answer)),
            Some(Err((message, hint))) => Err(Error::Asked { message, hint }),
            None => Ok(None),
        }
    }

    /// How a question stands that somebody may have asked.
    pub(crate) fn asked(&self, id: &str, question: Question) -> Asked {
        let asked = self.answers.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((waiting, _)) = asked.get(&(id.to_owned(), question)) else {
            return Asked::No;
        };
        match &*waiting.borrow() {
            None => Asked::Now,
            Some(Err((message, _))) => Asked::Refused(message.clone()),
            Some(Ok(_)) => Asked::No,
        }
    }

    fn waiting(self: &Arc<Site>, id: &str, question: Question) -> Waiting {
        let mut asked = self.answers.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, (waiting, since)| waiting.borrow().is_none() || since.elapsed() < REFUSED_FOR);
        let key = (id.to_owned(), question);
        if let Some((waiting, _)) = asked.get(&key) {
            return waiting.clone();
        }
        let (tell, waiting) = watch::channel(None);
        asked.insert(key.clone(), (waiting.clone(), Instant::now()));
        let site = self.clone();
        tokio::spawn(async move {
            let told = site.ask_and_keep(&key.0, question).await;
            let is_kept = told.is_ok();
            // Nobody may be waiting any more.
            let _ = tell.send(Some(told));
            if is_kept {
                let mut asked = site.answers.asked.lock().unwrap_or_else(PoisonError::into_inner);
                asked.remove(&key);
            }
        });
        waiting
    }

    async fn ask_and_keep(self: &Arc<Site>, id: &str, question: Question) -> Told {
        let told = |error: Error| (error.to_string(), error.hint());
        let dir = {
            let id = id.to_owned();
            let found = self.read(move |store| Ok(store.run_dir(&id))).await;
            found.map_err(told)?
        };
        let answer = self
            .ask(&question.words(id, &dir), PATIENCE)
            .await
            .map_err(told)?;
        let answer = Arc::new(question.of_answer(answer));
        if answer.is_null() {
            return Err(("there is nothing to show".into(), None));
        }
        let kept = answer.clone();
        // A home that cannot be written is no reason not to show it.
        let _ = self
            .read(move |_| Ok(keep(&question.kept_at(&dir), VERSION, &*kept)?))
            .await;
        Ok(answer)
    }
}
