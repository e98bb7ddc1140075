//! The verb `plan`: what a training would take and how long, worked out in a supervised worker; nothing is trained.

use serde::Serialize;
use tidegate_memory::{Budget, resolve};
use tidegate_watch::{Event, Plan, Update, supervise};

use crate::train::unfinished;
use crate::worker::{Task, floor};
use crate::{Error, Job, Result, Session};

/// A plan, and the budget that it was made for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    #[serde(flatten)]
    pub plan: Plan,
    pub containment: String,
    /// What planning itself took.
    pub seconds: f64,
}

/// Plans the training of `job`, on an accelerator of so much memory if asked. No run, no model and no pack is left.
pub fn plan(
    session: &Session,
    job: &Job,
    device_memory: Option<u64>,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Planned> {
    job.check()?;
    let budget = resolve(&session.host, job.memory)?;
    let task = Task::Plan {
        job: Box::new(job.clone()),
        budget: budget.bytes,
        packs: session.packs(),
        device_memory,
    };
    let mut child = task.child()?;
    child.limit_bytes = Some(floor(budget.bytes));
    let mut told: Option<Plan> = None;
    let ended = supervise(&session.host, child, &mut |update| {
        match (&update, &mut told) {
            (Update::Event(Event::Plan(plan)), _) => told = Some((**plan).clone()),
            (Update::Event(Event::Times(times)), Some(plan)) => plan.times = Some(times.clone()),
            _ => {}
        }
        watch(&budget, update);
    })?;
    match (told, &ended.done, ended.exit_code()) {
        (Some(plan), Some(_), 0) => Ok(Planned {
            plan,
            seconds: ended.duration.as_secs_f64(),
            containment: ended.containment,
        }),
        (None, Some(_), 0) => Err(Error::Ended {
            message: "the worker told no plan".into(),
            hint: None,
            exit_code: 1,
            run: None,
        }),
        _ => Err(unfinished(&ended, None)),
    }
}
