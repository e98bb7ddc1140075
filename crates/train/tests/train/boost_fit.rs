//! Boosted trees learn what is there to be learned, as well as the reference does.

use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_memory::Ledger;
use tidegate_train::boost::{self, FeatureBins, Forest, Growth, Objective, Options, Permutation, Trained};

use crate::boost_data::{Kind, Problem, ROOMY, done, problem, run};
use crate::tables::uniform;

fn metric(trained: &Trained, name: &str) -> (f64, f64) {
    let found = trained.quality.metrics.iter().find(|metric| metric.name == name);
    let metric = found.unwrap_or_else(|| panic!("{name} in {:?}", trained.quality.metrics));
    (metric.value, metric.baseline.unwrap_or(f64::NAN))
}

/// A single tree without shrinkage or penalty.
fn one_tree(depth: usize) -> Options {
    Options {
        trees: 1,
        depth,
        learning_rate: 1.0,
        l2: 0.0,
        ..Options::new(Objective::Squared)
    }
}

fn simple(rows: Vec<Vec<f32>>, target: impl Fn(&[f32]) -> f32) -> Problem {
    Problem {
        target: rows.iter().map(|row| target(row)).collect(),
        held_out: vec![false; rows.len()],
        rows,
        objective: Objective::Squared,
    }
}

#[test]
fn a_tree_fits_a_step_function_exactly() {
    let rows = (0..2000)
        .map(|i| vec![uniform(1, i) as f32, uniform(2, i) as f32])
        .collect();
    let step = |row: &[f32]| {
        if row[1] < 0.25 {
            -3.0
        } else {
            f32::from(u8::from(row[0] >= 0.5))
        }
    };
    let mut problem = simple(rows, step);
    // Cuts where the steps are.
    for row in &mut problem.rows {
        for x in row {
            *x = (*x * 8.0).floor() / 8.0;
        }
    }
    problem.target = problem.rows.iter().map(|row| step(row)).collect();
    let trained = problem.fit(&one_tree(2));
    let mut margin = [0.0];
    for (row, target) in problem.rows.iter().zip(&problem.target) {
        trained.forest.margins(row, &mut margin);
        assert!(
            (margin[0] - target).abs() < 1e-5,
            "{row:?}: {margin:?} instead of {target}"
        );
    }
    assert_eq!(trained.forest.trees[0].n_leaves(), 3);
    let importance = trained.forest.importance();
    assert_eq!(
        importance
            .iter()
            .map(|feature| feature.splits)
            .collect::<Vec<_>>(),
        [1, 1]
    );
    assert!(importance[1].gain > importance[0].gain);
}

#[test]
fn missing_values_go_the_way_that_was_learned() {
    for (missing, low) in [(5.0, -1.0), (-1.0, -1.0), (2.0, 2.0)] {
        let x = |i: usize| {
            if i.is_multiple_of(3) {
                f32::NAN
            } else {
                (i % 10) as f32
            }
        };
        let of = move |row: &[f32]| match row[0] {
            x if x.is_nan() => missing,
            x if x < 5.0 => low,
            _ => 5.0,
        };
        let problem = simple((0..900).map(|i| vec![x(i)]).collect(), of);
        let trained = problem.fit(&one_tree(2));
        let mut margin = [0.0];
        for x in [f32::NAN, 1.0, 9.0, f32::INFINITY, f32::NEG_INFINITY] {
            trained.forest.margins(&[x], &mut margin);
            assert!((margin[0] - of(&[x])).abs() < 1e-5, "{x}: {margin:?}");
        }
    }
}

/// Being missing can be all that counts.
#[test]
fn missing_values_can_stand_alone() {
    let x = |i: usize| {
        if i.is_multiple_of(4) {
            f32::NAN
        } else {
            uniform(3, i) as f32
        }
    };
    let of = |row: &[f32]| f32::from(u8::from(row[0].is_nan()));
    let trained = simple((0..900).map(|i| vec![x(i)]).collect(), of).fit(&one_tree(1));
    let mut margin = [0.0];
    for x in [f32::NAN, 0.5, f32::NEG_INFINITY, f32::MIN] {
        trained.forest.margins(&[x], &mut margin);
        assert!((margin[0] - of(&[x])).abs() < 1e-5, "{x}: {margin:?}");
    }
}

/// The figures of `boost_reference.py` (scikit-learn 1.9), and how far from them we may be. Its cuts differ: with
/// other numbers of bins it gets 0.546 to 0.555 on the first problem, XGBoost 0.554, LightGBM 0.562.
#[test]
fn problems_are_solved_as_well_as_by_the_reference() {
    for (kind, name, expected, tolerance) in EXPECTED {
        let problem = problem(kind, 20_000);
        let trained = problem.fit(&Options::new(problem.objective));
        let (found, baseline) = metric(&trained, name);
        println!("{kind:?} {name} {found} (reference {expected}, baseline {baseline})");
        assert!(
            found < expected * (1.0 + tolerance),
            "{kind:?}: {found} instead of {expected}"
        );
        assert!(
            found < 0.8 * baseline || kind == Kind::Lognormal,
            "{kind:?}: {found}, baseline {baseline}"
        );
        assert!(found < baseline);
    }
}

const EXPECTED: [(Kind, &str, f64, f64); 4] = [
    (Kind::Number, "rmse", 0.5548813229160072, 0.02),
    (Kind::Lognormal, "rmse", 305.1068917185912, 0.02),
    (Kind::Two, "log_loss", 0.3184929642739106, 0.02),
    (Kind::Three, "log_loss", 0.37344509469831894, 0.02),
];

#[test]
fn early_stopping_keeps_the_best_round() {
    let mut problem = problem(Kind::Two, 4_000);
    // Nothing to be learned after a while: half of the targets are noise.
    for (row, target) in problem
        .target
        .iter_mut()
        .enumerate()
        .filter(|(row, _)| row % 2 == 0)
    {
        *target = f32::from(u8::from(uniform(9, row) < 0.5));
    }
    let options = Options {
        trees: 200,
        learning_rate: 0.3,
        early_stopping: Some(5),
        ..Options::new(problem.objective)
    };
    let features = problem.features(255);
    let ledger = Ledger::new(ROOMY);
    let rows = problem.resident(&features, 1000, &ledger);
    let plan = boost::plan(&problem.shape(&features, 1000), &options, 2, ROOMY).unwrap();
    let trained = done(run(&rows, &features, &options, &plan, &ledger, None, usize::MAX));
    assert!(trained.rounds < 200);
    assert_eq!(trained.rounds, trained.forest.n_rounds() + 5);
    let shorter = Options {
        trees: trained.forest.n_rounds(),
        early_stopping: None,
        ..options
    };
    let same = done(run(&rows, &features, &shorter, &plan, &ledger, None, usize::MAX));
    assert_eq!(same.forest, trained.forest);
    assert_eq!(
        same.quality.metrics, trained.quality.metrics,
        "judged by the trees that were kept"
    );
    assert_eq!(same.held_out_loss, trained.held_out_loss);
    let (log_loss, _) = metric(&trained, "log_loss");
    assert!((log_loss - trained.held_out_loss.unwrap()).abs() < 1e-5);
}

#[test]
fn the_best_leaves_are_split_first() {
    let problem = problem(Kind::Number, 20_000);
    let with = |growth, leaves, depth| Options {
        trees: 30,
        growth,
        leaves,
        depth,
        ..Options::new(problem.objective)
    };
    let by_leaf = problem.fit(&with(Growth::Leaf, Some(31), 20));
    assert!(by_leaf.forest.trees.iter().all(|tree| tree.n_leaves() == 31));
    assert!(by_leaf.forest.trees.iter().any(|tree| tree.depth() > 5));
    let by_depth = problem.fit(&with(Growth::Depth, None, 5));
    assert!(by_leaf.training_loss < by_depth.training_loss);
    // With all leaves to be had, the order in which they are split does not matter.
    let all = problem.fit(&with(Growth::Leaf, None, 5));
    let gains = |trained: &Trained| trained.forest.trees[0].gain.clone();
    assert_eq!(gains(&all), gains(&by_depth));
    assert_eq!(all.forest, by_depth.forest);
    let few = problem.fit(&with(Growth::Depth, Some(7), 5));
    assert!(few.forest.trees.iter().all(|tree| tree.n_leaves() == 7));
}

#[test]
fn weights_of_classes_move_the_balance() {
    let problem = problem(Kind::Two, 4_000);
    let mean = |weights: [f32; 2]| {
        let options = Options {
            trees: 10,
            class_weights: Some(weights.to_vec()),
            ..Options::new(problem.objective)
        };
        let trained = problem.fit(&options);
        let mut p = [0.0];
        let predicted = problem.rows.iter().map(|row| {
            trained.forest.predict(row, &mut p);
            f64::from(p[0])
        });
        predicted.sum::<f64>() / problem.rows.len() as f64
    };
    let (even, light, heavy) = (mean([1.0, 1.0]), mean([3.0, 1.0]), mean([1.0, 3.0]));
    assert!(
        light < even - 0.05 && even + 0.05 < heavy,
        "{light} {even} {heavy}"
    );
    assert!((mean([2.0, 2.0]) - even).abs() < 0.01);
}

#[test]
fn shuffling_tells_what_counts() {
    for kind in [Kind::Number, Kind::Two, Kind::Three] {
        let problem = problem(kind, 10_000);
        let trained = problem.fit(&Options::new(problem.objective));
        let (features, ledger) = (problem.features(255), Ledger::new(ROOMY));
        let rows = problem.resident(&features, 1000, &Ledger::new(ROOMY));
        let stop = AtomicBool::new(false);
        let mut n_told = 0;
        let mut found = |threads| {
            let permutation = Permutation {
                blocks: &rows,
                seed: 7,
                threads,
                ledger: &ledger,
                stop: &stop,
            };
            boost::permutation_importance(&trained.forest, &permutation, &mut |_| n_told += 1).unwrap()
        };
        let rises: Vec<f64> = found(2).unwrap().iter().map(|feature| feature.rise).collect();
        assert_eq!(found(1), found(3));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(found(2), None);
        assert!(
            n_told >= features.len(),
            "one thread alone tells of every feature"
        );
        assert_eq!(ledger.used(), 0);
        // x0 counts most; x5 and x6 are noise.
        assert!((1..8).all(|j| rises[j] < rises[0]), "{rises:?}");
        assert!(
            rises[5].abs() < rises[0] / 20.0 && rises[6].abs() < rises[0] / 20.0,
            "{rises:?}"
        );
    }
}

#[test]
fn targets_that_cannot_be_are_refused() {
    for (objective, target) in [
        (Objective::Squared, f32::NAN),
        (Objective::Squared, f32::INFINITY),
        (Objective::Logistic, 2.0),
        (Objective::Softmax(3), 3.0),
        (Objective::Softmax(3), 0.5),
    ] {
        let features = [FeatureBins::new("x", vec![0.5])];
        let ledger = Ledger::new(ROOMY);
        let mut problem = simple((0..100).map(|i| vec![uniform(1, i) as f32]).collect(), |_| 1.0);
        problem.target[50] = target;
        let rows = problem.resident(&features, 64, &ledger);
        let options = Options::new(objective);
        let plan = boost::plan(&problem.shape(&features, 64), &options, 2, ROOMY).unwrap();
        let found = run(&rows, &features, &options, &plan, &ledger, None, usize::MAX);
        assert!(
            matches!(found, Err(tidegate_train::Error::ImpossibleTargets { rows: 1 })),
            "{found:?}"
        );
    }
}

/// A file from outside can say anything.
#[test]
fn forests_with_a_fault_are_recognised() {
    type Break = fn(&mut Forest);
    let problem = problem(Kind::Three, 500);
    let options = Options {
        trees: 2,
        depth: 3,
        ..Options::new(problem.objective)
    };
    let sound = problem.fit(&options).forest;
    assert_eq!(sound.fault(), None);
    let breaks: [Break; 9] = [
        |forest| forest.base.truncate(2),
        |forest| forest.trees.truncate(4),
        |forest| forest.objective = Objective::Softmax(0),
        |forest| forest.trees[1].left[0] = 0xFFFF,
        |forest| forest.trees[1].right[1] = 1,
        |forest| forest.trees[1].feature[0] = 8,
        |forest| forest.trees[1].threshold[0] += 1.0,
        |forest| forest.trees[5].value[2] = f32::NAN,
        |forest| forest.trees[2].default_left.truncate(1),
    ];
    for (i, change) in breaks.iter().enumerate() {
        let mut forest = sound.clone();
        change(&mut forest);
        assert!(forest.fault().is_some(), "change {i} went unseen");
    }
}

/// A constant target, a feature of one value, a single row: nothing to split, and the mean is the answer.
#[test]
fn nothing_to_learn_gives_the_mean() {
    for n_rows in [1, 2, 500] {
        let problem = simple(vec![vec![1.0, f32::NAN]; n_rows], |_| 7.5);
        let trained = problem.fit(&Options::new(Objective::Squared));
        let mut margin = [0.0];
        trained.forest.margins(&[1.0, 2.0], &mut margin);
        assert_eq!(margin, [7.5]);
        assert!(trained.quality.metrics.is_empty(), "no rows were held out");
    }
}
