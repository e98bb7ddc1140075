//! Judging a forest by the rows held out.

use std::sync::Mutex;

use tidegate_data::target::Task;

use super::crew::Crew;
use super::objective::{Losses, Objective, predictions};
use super::pass::{Halt, Route, pass};
use super::rows::Part;
use super::start::Facts;
use super::state::Pieces;
use crate::{Evaluator, Quality};

/// The quality of the margins as they stand.
pub(super) fn evaluate(crew: &mut Crew<'_>, objective: Objective, facts: &Facts) -> Result<Quality, Halt> {
    let task = match objective {
        Objective::Squared => Task::Regression,
        Objective::Logistic => Task::Binary,
        Objective::Softmax(_) => Task::Multiclass,
    };
    let evaluator = Evaluator::new(task, &facts.priors(objective));
    if facts.n_held_out == 0 {
        return Ok(Quality::default());
    }
    let n_outputs = objective.n_outputs();
    let route = Route {
        rows: Part::Labels,
        reads: Pieces {
            margins: 0..n_outputs,
            ..Pieces::default()
        },
        writes: Pieces::default(),
        // The sums are always the same.
        in_order: true,
    };
    let evaluator = Mutex::new(evaluator);
    pass(
        crew,
        &route,
        &|_, visited, state| {
            let mut evaluator = evaluator.lock().expect("no thread panics with it");
            let (rows, n_rows) = (&visited.rows, visited.rows.target.len());
            let margins = &state.margins;
            let mut predicted = vec![0.0; n_outputs];
            let mut scores = vec![0.0; n_outputs];
            for row in (0..n_rows).filter(|row| rows.held_out[*row] != 0) {
                for (class, predicted) in predicted.iter_mut().enumerate() {
                    *predicted = margins[class * n_rows + row];
                }
                predictions(objective, &mut predicted);
                for (score, predicted) in scores.iter_mut().zip(&predicted) {
                    *score = f64::from(*predicted);
                }
                evaluator.push(&scores, f64::from(rows.target[row]));
            }
            Losses::default()
        },
        &|_| {},
    )?;
    Ok(evaluator
        .into_inner()
        .expect("no thread panics with it")
        .quality())
}
