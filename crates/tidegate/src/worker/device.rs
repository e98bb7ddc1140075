//! Whether a network fits on an accelerator, answered without one.
//!
//! What the arena holds would be there; what reads and brings samples stays on the host. What cannot be known here is
//! taken to be so and said.

use tidegate_data::arrays::ArraySource;
use tidegate_memory::format_bytes;
use tidegate_train::Error as TrainError;
use tidegate_train::network::{self, Design, Options, Planned, Share};
use tidegate_watch::{DevicePlan, Plan};

use super::network::{NETWORK, asked, details};
use crate::Result;

/// What a CUDA context takes before anything is put there: 0.3 to 0.6 GB are usual.
const CONTEXT: u64 = 500_000_000;
/// This part of the device is left alone: it hands out memory by pages of 2 MiB, and others may hold some of it.
const MARGIN: u64 = 50;

/// Who holds what.
type Holders = Vec<(String, u64)>;

/// A network, and the memory that it is to fit into.
pub(super) struct Question<'a> {
    pub design: &'a Design,
    pub source: &'a ArraySource,
    pub validation: Option<&'a ArraySource>,
    pub options: &'a Options,
    pub threads: usize,
    pub held: &'a [(String, u64)],
    pub budget: u64,
    pub memory: u64,
}

impl Question<'_> {
    fn plan(&self, budget: u64) -> Result<Planned, TrainError> {
        network::plan(
            self.design,
            self.source,
            self.validation,
            self.options,
            self.threads,
            self.held,
            budget,
        )
    }
}

/// The host's part and the device's.
pub(super) fn plan(question: &Question) -> Result<Plan> {
    let sum = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
    // No memory at all is refused with the least that would do, part by part.
    let least = match question.plan(0) {
        Err(TrainError::BudgetTooSmall { holders, .. }) => holders,
        Err(error) => return Err(error.into()),
        Ok(planned) => planned.plan.holders,
    };
    let (least_arena, rest) = apart(least);
    let margin = question.memory / MARGIN;
    let room = question.memory.saturating_sub(CONTEXT + margin);
    let chosen = match question.plan(network::with_margin(room + sum(&rest))) {
        Ok(planned) => Some(planned),
        Err(TrainError::BudgetTooSmall { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let arena = match &chosen {
        Some(planned) => shares(planned),
        None => least_arena.clone(),
    };
    let mut holders = vec![("context".to_string(), CONTEXT)];
    holders.extend(arena);
    let least = (CONTEXT + sum(&least_arena)) * MARGIN / (MARGIN - 1) + 1;
    let device = DevicePlan {
        memory: question.memory,
        fits: chosen.is_some(),
        needs: sum(&holders),
        holders,
        least,
        assumptions: assumptions(question.threads, margin),
    };
    let (host, host_needs) = host(question)?;
    let details = chosen.as_ref().map(details).unwrap_or_default();
    Ok(Plan {
        // What is on the device stands there.
        arena: Vec::new(),
        holders: host,
        needs: host_needs,
        device: Some(device),
        ..details
    })
}

/// What stays on the host, as far as its budget goes: all but the arena, and a batch on its way.
fn host(question: &Question) -> Result<(Holders, u64)> {
    let sample: usize = question.design.input.iter().product();
    let staging = 2 * (question.options.batch * sample * size_of::<f32>()) as u64;
    let arena = question.plan(ANY_BUDGET)?.program.bytes();
    let planned = question
        .plan((question.budget + arena).saturating_sub(staging))
        .map_err(|error| match error {
            TrainError::BudgetTooSmall { holders, .. } => {
                let mut holders = apart(holders).1;
                holders.push(("staging".into(), staging));
                let least = holders.iter().map(|(_, bytes)| bytes).sum();
                asked(
                    TrainError::BudgetTooSmall {
                        least,
                        budget: question.budget,
                        holders,
                    },
                    question.budget,
                )
            }
            error => error,
        })?;
    let mut holders = planned.plan.holders;
    holders.retain(|(name, _)| name != NETWORK);
    holders.push(("staging".into(), staging));
    let needs = holders.iter().map(|(_, bytes)| bytes).sum();
    Ok((holders, needs))
}

/// More than any job takes, and few enough to be added to.
const ANY_BUDGET: u64 = 1 << 60;

/// The parts of the arena, and all other holders.
fn apart(holders: Holders) -> (Holders, Holders) {
    let is_share = |(name, _): &(String, u64)| Share::NAMES.contains(&name.as_str());
    holders.into_iter().partition(is_share)
}

fn shares(planned: &Planned) -> Holders {
    let shares = planned.program.shares().into_iter();
    shares
        .map(|share| (share.name.to_string(), share.bytes))
        .collect()
}

fn assumptions(threads: usize, margin: u64) -> Vec<String> {
    vec![
        format!("its context takes {}, as CUDA's does", format_bytes(CONTEXT)),
        "buffers lie there as in the arena here, in 32-bit floats unless changed above".into(),
        format!(
            "kernels take no more scratch than ours do with {threads} threads: libraries may ask for more"
        ),
        format!(
            "{} are left alone, for pages and what else is there",
            format_bytes(margin)
        ),
        "two batches of samples are on their way on the host".into(),
    ]
}
