//! The queue between the thread that attends the worker and the caller, which may be slow.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tidegate_runs::{FlightRecord, Stream};

use crate::ended::OverLine;
use crate::event::Event;
use crate::job::Update;

/// Above this many, what comes again anyway is left out.
const SOFT_LIMIT: usize = 256;
/// Above this many, everything is: a flood must not grow the supervisor.
const HARD_LIMIT: usize = 8192;

/// An [`Update`] that owns what it says.
#[derive(Debug)]
pub(crate) enum Item {
    Started {
        pid: i32,
        run: Option<String>,
        containment: String,
        cgroup: Option<PathBuf>,
    },
    Event(Event),
    Sample(Box<FlightRecord>),
    Output {
        stream: Stream,
        line: String,
    },
    Stopping {
        second: bool,
    },
    NearLine {
        used: u64,
        limit: u64,
    },
    OverLine(OverLine),
}

impl Item {
    pub(crate) fn warning(text: impl Into<String>) -> Item {
        Item::Event(Event::Warning { text: text.into() })
    }

    pub(crate) fn update(&self) -> Update<'_> {
        match self {
            Item::Started {
                pid,
                run,
                containment,
                cgroup,
            } => Update::Started {
                pid: *pid,
                run: run.as_deref(),
                containment,
                cgroup: cgroup.as_deref(),
            },
            Item::Event(event) => Update::Event(event),
            Item::Sample(record) => Update::Sample(record),
            Item::Output { stream, line } => Update::Output {
                stream: *stream,
                line,
            },
            Item::Stopping { second } => Update::Stopping { second: *second },
            Item::NearLine { used, limit } => Update::NearLine {
                used: *used,
                limit: *limit,
            },
            Item::OverLine(over) => Update::OverLine(*over),
        }
    }

    fn comes_again(&self) -> bool {
        matches!(
            self,
            Item::Sample(_)
                | Item::Output { .. }
                | Item::Event(Event::Progress { .. } | Event::Ledger { .. })
        )
    }
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    lines_left_out: u64,
    events_left_out: u64,
    closed: bool,
    abandoned: bool,
}

impl Queue {
    /// Never waits for the caller.
    pub(crate) fn push(&self, item: Item) {
        let mut state = self.lock();
        let full = state.items.len();
        if full >= HARD_LIMIT || (full >= SOFT_LIMIT && item.comes_again()) {
            match item {
                Item::Output { .. } => state.lines_left_out += 1,
                Item::Sample(_) | Item::Event(Event::Progress { .. } | Event::Ledger { .. }) => {}
                _ => state.events_left_out += 1,
            }
            return;
        }
        state.items.push_back(item);
        self.filled.notify_one();
    }

    /// The next item, or `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Item> {
        let mut state = self.lock();
        loop {
            // What was left out is said once the backlog before it has been heard.
            if state.items.is_empty() {
                if let Some(text) = state.left_out() {
                    return Some(Item::warning(text));
                }
                if state.closed {
                    return None;
                }
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            return state.items.pop_front();
        }
    }

    /// The worker is over; nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// The caller is gone (it panicked); the worker must not outlive it.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn left_out(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.lines_left_out);
        let events = std::mem::take(&mut self.events_left_out);
        match (lines, events) {
            (0, 0) => None,
            (lines, 0) => Some(format!(
                "{lines} lines of output came too fast to be shown; the log has them"
            )),
            (0, events) => Some(format!("{events} events came too fast to be handled")),
            (lines, events) => Some(format!(
                "{lines} lines of output and {events} events came too fast to be handled"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded_and_counted_and_important_things_get_through() {
        let queue = Queue::default();
        for _ in 0..SOFT_LIMIT + 10 {
            queue.push(Item::Output {
                stream: Stream::Out,
                line: "x".into(),
            });
        }
        queue.push(Item::Stopping { second: true });
        queue.close();
        let mut heard = Vec::new();
        while let Some(item) = queue.pop() {
            heard.push(item);
        }
        assert_eq!(heard.len(), SOFT_LIMIT + 2);
        assert!(matches!(heard[SOFT_LIMIT], Item::Stopping { second: true }));
        let Item::Event(Event::Warning { text }) = &heard[SOFT_LIMIT + 1] else {
            panic!()
        };
        assert!(text.starts_with("10 lines"), "{text}");
    }
}
