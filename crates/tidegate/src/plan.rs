//! The verb `plan`: what a training would take and how long, worked out in a supervised worker; nothing is trained.

use serde::Serialize;
use tidegate_memory::{Budget, resolve};
use tidegate_watch::{EncodedColumn, Event, Plan, Update, supervise};

use crate::train::unfinished;
use crate::worker::{Task, floor};
use crate::{Error, Job, Result, Session};

/// A plan, and what was said on the way to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Planned {
    #[serde(flatten)]
    pub plan: Plan,
    /// What every column becomes; nothing of data without columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// What is predicted by what, and what there is to know beside it.
    pub notices: Vec<String>,
    pub warnings: Vec<String>,
    pub containment: String,
    /// What planning itself took.
    pub seconds: f64,
}

/// The columns of a table and the shape that they take.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Encoding {
    pub columns: Vec<EncodedColumn>,
    pub shape: String,
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
    let mut planned = Planned::default();
    let ended = supervise(&session.host, child, &mut |update| {
        if let Update::Event(event) = &update {
            match event {
                Event::Plan(plan) => told = Some((**plan).clone()),
                Event::Times(times) => {
                    if let Some(plan) = &mut told {
                        plan.times = Some(times.clone());
                    }
                }
                Event::Encoding { columns, shape } => {
                    let (columns, shape) = (columns.clone(), shape.clone());
                    planned.encoding = Some(Encoding { columns, shape });
                }
                Event::Notice { text } => planned.notices.push(text.clone()),
                Event::Warning { text } => planned.warnings.push(text.clone()),
                _ => {}
            }
        }
        watch(&budget, update);
    })?;
    match (told, &ended.done, ended.exit_code()) {
        (Some(plan), Some(_), 0) => Ok(Planned {
            plan,
            seconds: ended.duration.as_secs_f64(),
            containment: ended.containment,
            ..planned
        }),
        (None, Some(_), 0) => Err(Error::Ended {
            message: "the worker told no plan".into(),
            hint: None,
            exit_code: 1,
            run: None,
            least: None,
        }),
        _ => Err(unfinished(&ended, None)),
    }
}
