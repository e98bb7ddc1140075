//! Rows given sparse and rows given dense teach the same.

use tidegate_data::Batch;
use tidegate_data::batch::{PlainRow, Width};
use tidegate_data::target::{Label, Target};
use tidegate_memory::Ledger;

use super::adaptive::Adaptive;
use super::loss::Loss;
use super::moments::Moments;
use super::newton::Streaming;
use super::{LinearModel, Problem, outputs};

const WIDTH: usize = 6;

fn uniform(i: usize) -> f32 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1u64 << 24) as f32
}

/// Rows of which about half of the values are zero; the first `dense` values are given dense, the others sparse.
fn batch(classes: usize, dense: usize) -> Batch {
    let row = |i: usize| {
        let value = |j: usize| match uniform(i * 20 + j) {
            u if u < 0.5 => 0.0,
            _ => uniform(i * 20 + j + 10) * 2.0 - 1.0,
        };
        let values: Vec<f32> = (0..WIDTH).map(value).collect();
        let sparse = (dense..WIDTH).filter(|j| values[*j] != 0.0);
        PlainRow {
            sparse: sparse.map(|j| ((j - dense) as u32, values[j])).collect(),
            dense: values[..dense].to_vec(),
            target: (uniform(i * 20 + 19) * classes as f32 + values[0])
                .clamp(0.0, classes as f32 - 1.0)
                .floor()
                .into(),
            held_out: i.is_multiple_of(7),
        }
    };
    let rows: Vec<PlainRow> = (0..500).map(row).collect();
    let width = Width {
        dense,
        sparse: WIDTH - dense,
    };
    Batch::from_rows(width, &rows, &Ledger::new(1 << 24).holder("batches")).unwrap()
}

fn targets() -> [Target; 3] {
    let label = |text: &str| Label::new(text);
    [
        Target::Number {
            mean: 1.0,
            deviation: 0.5,
        },
        Target::Binary {
            negative: label("0"),
            positive: label("1"),
        },
        Target::Classes {
            labels: ["0", "1", "2"].map(label).to_vec(),
        },
    ]
}

fn problem(target: &Target) -> Problem {
    Problem {
        loss: Loss::of(target.task()),
        target: target.clone(),
        l1: 0.5,
        l2: 1.0,
        class_weights: vec![2.0; target.labels().len()],
        n: WIDTH + 1,
        outputs: outputs(target),
    }
}

fn assert_same(what: &str, found: &[f64], wanted: &[f64], tolerance: f64) {
    assert!(wanted.iter().any(|w| *w != 0.0), "{what}: {wanted:?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= tolerance, "{what}: {found} {wanted}");
    }
}

#[test]
fn sparse_rows_have_the_moments_of_dense_ones() {
    for target in targets() {
        let problem = problem(&target);
        let weights: Vec<f64> = (0..problem.total())
            .map(|i| f64::from(uniform(i)) - 0.5)
            .collect();
        let classes = target.labels().len().max(2);
        let of = |dense| Moments::of(&batch(classes, dense), &problem, &weights);
        let wanted = of(WIDTH);
        for dense in [0, 2] {
            let found = of(dense);
            assert_eq!(found.rows, wanted.rows);
            assert_same("loss", &[found.loss], &[wanted.loss], 1e-9);
            assert_same("gradient", &found.gradient, &wanted.gradient, 1e-9);
            assert_same("curvature", &found.curvature, &wanted.curvature, 1e-9);
        }
    }
}

#[test]
fn sparse_rows_teach_what_dense_ones_do() {
    for target in targets() {
        let problem = problem(&target);
        let classes = target.labels().len().max(2);
        let narrow = |dense| {
            let mut streaming = Streaming::new(&problem);
            let mut scratch = Moments::zero(problem.total());
            streaming.learn(&batch(classes, dense), &problem, &mut scratch);
            streaming.penalised(&problem)
        };
        assert_same("narrow", &narrow(2), &narrow(WIDTH), 1e-9);
    }
}

/// What is believed of sparse and of dense values differs, but where they come from does not.
#[test]
fn rows_one_by_one_come_close_to_the_solution() {
    for target in targets() {
        let problem = problem(&target);
        let classes = target.labels().len().max(2);
        for dense in [0, 2, WIDTH] {
            let batch = batch(classes, dense);
            let (mut streaming, mut scratch) = (Streaming::new(&problem), Moments::zero(problem.total()));
            streaming.learn(&batch, &problem, &mut scratch);
            let mut adaptive = Adaptive::new(&problem, 500);
            for epoch in 0..5 {
                adaptive.learn(&batch, &problem);
                if epoch < 4 {
                    adaptive.start_epoch(&problem);
                }
            }
            let objective =
                |weights: Vec<f64>| Moments::of(&batch, &problem, &weights).loss + problem.penalty(&weights);
            let (found, wanted) = (
                objective(adaptive.weights(&problem)),
                objective(streaming.penalised(&problem)),
            );
            let nothing = objective(vec![0.0; problem.total()]);
            assert!(
                found < nothing,
                "{target:?}, {dense} dense: {found}, at zero {nothing}"
            );
            assert!(
                found - wanted < 0.01 * wanted,
                "{target:?}, {dense} dense: {found} {wanted}"
            );
        }
    }
}

#[test]
fn scores_of_a_row_that_was_given_both_ways() {
    for target in targets() {
        let problem = problem(&target);
        let weights = (0..problem.total())
            .map(|i| f64::from(uniform(i)) - 0.5)
            .collect();
        let model = LinearModel { weights, target };
        let scores = |dense| {
            let mut scores = vec![0.0; model.n_scores()];
            model.predict(batch(2, dense).row(5), &mut scores);
            scores
        };
        assert_same("scores", &scores(0), &scores(WIDTH), 1e-12);
    }
}
