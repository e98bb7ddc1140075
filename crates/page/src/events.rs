//! What moves, as server-sent events: whoever has a page open hears of it.
//!
//! `run` is the state of a run that is new or has changed, as JSON, and `sentence` how one that is not over stands, in words.
//! Of one run also `memory`, the newest look at it, `metric`, each value that was recorded, and `over`, after which nothing
//! comes any more.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tidegate_runs::{FlightRecord, Run, RunsQuery, Store, now_ms};

use crate::error::{Error, Result};
use crate::run::state::{last_look, live_sentence};
use crate::site::Site;

/// Between two looks at the store.
const EVERY: Duration = Duration::from_millis(700);
/// Of all runs those are looked at that are not over, and so many of the newest.
const NEWEST: usize = 50;
/// Metrics that are told at a look.
const METRICS: usize = 500;

type Events<S> = Sse<axum::response::sse::KeepAliveStream<S>>;

/// Of all runs.
pub(crate) async fn of_all(
    State(site): State<Arc<Site>>,
) -> Result<Events<impl Stream<Item = Result<Event, Infallible>>>> {
    let seen = Seen::default();
    // What is there now is on the page already.
    let (seen, _) = site.read(move |store| seen.look(store)).await?;
    Ok(stream(seen, move |seen| {
        let site = site.clone();
        async move {
            let (seen, told) = site.read(move |store| seen.look(store)).await.ok()?;
            site.close_orphans(&seen.live);
            Some((Some(seen), told))
        }
    }))
}

/// Of one.
pub(crate) async fn of_one(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
) -> Result<Events<impl Stream<Item = Result<Event, Infallible>>>> {
    let following = Following::new(id);
    let (following, _) = site.read(move |store| following.look(store)).await?;
    Ok(stream(following, move |following| {
        let site = site.clone();
        async move {
            let (following, told) = site.read(move |store| following.look(store)).await.ok()?;
            site.close_orphans(&following.live);
            Some((following.live.is_some().then_some(following), told))
        }
    }))
}

/// Looks again and again, as long as looking works and there is something to look for.
fn stream<T: Send + 'static, F: Future<Output = Option<(Option<T>, Vec<Event>)>> + Send>(
    first: T,
    look: impl FnMut(T) -> F + Send + 'static,
) -> Events<impl Stream<Item = Result<Event, Infallible>>> {
    let told = unfold(
        (Some(first), VecDeque::new(), look),
        |(mut state, mut told, mut look)| async move {
            loop {
                if let Some(event) = told.pop_front() {
                    return Some((Ok(event), (state, told, look)));
                }
                tokio::time::sleep(EVERY).await;
                let (next, events) = look(state?).await?;
                (state, told) = (next, events.into());
            }
        },
    );
    Sse::new(told).keep_alive(KeepAlive::default())
}

fn event(name: &str, data: &impl Serialize) -> Result<Event> {
    Event::default()
        .event(name)
        .json_data(data)
        .map_err(|_| Error::Bug)
}

/// How a run that is not over stands.
#[derive(Debug, Serialize)]
struct Sentence<'r> {
    id: &'r str,
    text: String,
}

fn sentence(run: &Run, last: Option<&FlightRecord>) -> Result<Event> {
    let told = Sentence {
        id: &run.id,
        text: live_sentence(run, last, now_ms()),
    };
    event("sentence", &told)
}

/// What was told of all runs.
#[derive(Debug, Default)]
struct Seen {
    /// Each as it was told last.
    runs: HashMap<String, String>,
    /// Those that are not over.
    live: Vec<Run>,
}

impl Seen {
    fn look(self, store: &Store) -> Result<(Seen, Vec<Event>)> {
        let newest = RunsQuery {
            limit: NEWEST,
            ..RunsQuery::default()
        };
        let mut found = store.page(&newest)?.runs;
        found.extend(store.running()?);
        // One that was running and is so no longer may be older than the newest.
        let is_known = |id: &&String| found.iter().any(|run| run.id == **id);
        let others: Vec<&String> = self.runs.keys().filter(|id| !is_known(id)).collect();
        let others = others.into_iter().filter_map(|id| store.get(id).ok());
        found.extend(others);
        let (mut runs, mut live, mut told) = (HashMap::new(), Vec::new(), Vec::new());
        for (at, run) in found.iter().enumerate() {
            let text = serde_json::to_string(run).map_err(|_| Error::Bug)?;
            if self.runs.get(&run.id) != Some(&text) && !runs.contains_key(&run.id) {
                told.push(event("run", run)?);
            }
            if !run.status.is_over() && !runs.contains_key(&run.id) {
                told.push(sentence(run, last_look(store, &run.id).as_ref())?);
                live.push(run.clone());
            }
            if at < NEWEST || !run.status.is_over() {
                runs.insert(run.id.clone(), text);
            }
        }
        Ok((Seen { runs, live }, told))
    }
}

/// What was told of one run.
#[derive(Debug)]
struct Following {
    id: String,
    run: String,
    memory_ms: Option<u64>,
    /// The number of the last one. What came before is on the page already.
    metric: Option<i64>,
    /// It, as long as it is not over.
    live: Option<Run>,
}

impl Following {
    fn new(id: String) -> Following {
        Following {
            id,
            run: String::new(),
            memory_ms: None,
            metric: None,
            live: None,
        }
    }

    fn look(mut self, store: &Store) -> Result<(Following, Vec<Event>)> {
        let (run, mut told) = (store.get(&self.id)?, Vec::new());
        let known = match self.metric {
            Some(known) => known,
            None => store.last_metric(&self.id)?,
        };
        self.metric = Some(known);
        for (seq, metric) in store.metrics_after(&self.id, known, METRICS)? {
            self.metric = Some(seq);
            told.push(event("metric", &metric)?);
        }
        let last = last_look(store, &self.id);
        if let Some(record) = &last
            && self.memory_ms != Some(record.time_ms)
        {
            self.memory_ms = Some(record.time_ms);
            told.push(event("memory", record)?);
        }
        let text = serde_json::to_string(&run).map_err(|_| Error::Bug)?;
        if text != self.run {
            told.push(event("run", &run)?);
            self.run = text;
        }
        if run.status.is_over() {
            told.push(event("over", &run.status)?);
        } else {
            told.push(sentence(&run, last.as_ref())?);
        }
        self.live = Some(run).filter(|run| !run.status.is_over());
        Ok((self, told))
    }
}
