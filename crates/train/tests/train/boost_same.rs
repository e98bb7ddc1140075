//! Boosted trees are the same to the last bit, whatever the threads, the budget and the interruptions.

use proptest::prelude::*;
use tidegate_memory::Ledger;
use tidegate_train::boost::{
    self, FeatureBins, Forest, Growth, Kept, Objective, Options, Outcome, Plan, Resident, Shape, Trained,
};

use crate::boost_data::{Filed, Kind, Problem, ROOMY, binned, done, problem, run};

const BLOCK_ROWS: usize = 500;
const KINDS: [Kind; 4] = [Kind::Number, Kind::Lognormal, Kind::Two, Kind::Three];

struct Ready {
    features: Vec<FeatureBins>,
    rows: Resident,
    shape: Shape,
}

fn ready(problem: &Problem) -> Ready {
    let features = problem.features(64);
    let rows = problem.resident(&features, BLOCK_ROWS, &Ledger::new(ROOMY));
    let shape = problem.shape(&features, BLOCK_ROWS);
    Ready {
        features,
        rows,
        shape,
    }
}

fn few(kind: Kind, growth: Growth) -> (Problem, Options) {
    let problem = problem(kind, 5_300);
    let options = Options {
        trees: 6,
        depth: 5,
        leaves: (growth == Growth::Leaf).then_some(14),
        growth,
        row_sample: 0.8,
        column_sample: 0.7,
        ..Options::new(problem.objective)
    };
    (problem, options)
}

/// Trains within exactly the plan, and checks that all of it was used and comes back.
fn within(ready: &Ready, options: &Options, plan: &Plan) -> Trained {
    let (ledger, folder) = (Ledger::new(plan.total()), tempfile::tempdir().unwrap());
    let blocks = Filed::new(&ready.rows, plan.kept, folder.path());
    let resident = ledger
        .holder(boost::ROWS)
        .try_grant(plan.bytes(boost::ROWS))
        .unwrap();
    let trained = done(run(
        &blocks,
        &ready.features,
        options,
        plan,
        &ledger,
        None,
        usize::MAX,
    ));
    assert_eq!(ledger.peak(), plan.total(), "the plan is what is granted");
    drop(resident);
    assert_eq!(ledger.used(), 0, "every grant comes back");
    trained
}

#[test]
fn threads_and_budget_do_not_change_a_bit() {
    let mut seen: Vec<Plan> = Vec::new();
    for (kind, growth) in KINDS
        .into_iter()
        .zip([Growth::Depth, Growth::Leaf, Growth::Depth, Growth::Leaf])
    {
        let (problem, options) = few(kind, growth);
        let ready = ready(&problem);
        let roomy = boost::plan(&ready.shape, &options, 1, ROOMY).unwrap();
        let n = ready.shape.n_blocks();
        assert!(roomy.rows_fit() && roomy.kept.hot.min(roomy.kept.cold) == n);
        let model = within(&ready, &options, &roomy);
        let least = match boost::plan(&ready.shape, &options, 1, 0) {
            Err(tidegate_train::Error::BudgetTooSmall { least, .. }) => least,
            found => panic!("{found:?}"),
        };
        // Many steps, and the ends with more threads.
        for (threads, every) in [(1, 1), (2, 1), (3, 64)] {
            for step in (0..=64).step_by(every) {
                let budget = least + (roomy.total() - least) * step / 64;
                let plan = boost::plan(&ready.shape, &options, threads, budget).unwrap();
                assert!(plan.total() <= budget);
                if seen.iter().any(|other| other.holders == plan.holders) {
                    continue;
                }
                let found = within(&ready, &options, &plan);
                assert!(found == model, "{kind:?}, {threads} threads, {plan:?}");
                seen.push(plan);
            }
        }
    }
    let some = |what: &str, is: &dyn Fn(&Plan, Kept, usize) -> bool| {
        let found = seen.iter().any(|plan| is(plan, plan.kept, plan.shape.n_blocks()));
        assert!(found, "no plan had {what}");
    };
    some("all in memory", &|_, kept, n| kept.labels == n && kept.cold == n);
    some("nothing in memory", &|_, kept, _| kept.bins == 0 && kept.hot == 0);
    some("some bins in memory", &|_, kept, n| (1..n).contains(&kept.bins));
    some("bins without labels", &|_, kept, _| kept.labels < kept.bins);
    some("hot state without cold", &|_, kept, _| kept.cold < kept.hot);
    some("one histogram at a time", &|plan, _, _| plan.histograms == 1);
    some("children added up in several passes", &|plan, _, _| {
        plan.packed < plan.histograms.div_ceil(2)
    });
    some("threads that carry", &|plan, kept, n| {
        plan.carriers > 0 && kept.labels.min(kept.cold) < n
    });
    some("no thread that carries", &|plan, kept, n| {
        plan.carriers == 0 && kept.labels.min(kept.cold) < n
    });
}

#[test]
fn a_resumed_training_equals_an_uninterrupted_one() {
    for kind in KINDS {
        let (problem, mut options) = few(kind, Growth::Depth);
        options.early_stopping = Some(3);
        let ready = ready(&problem);
        let plan = boost::plan(&ready.shape, &options, 2, ROOMY).unwrap();
        let ledger = Ledger::new(ROOMY);
        let go = |resume: Option<&Forest>, last| {
            run(
                &ready.rows,
                &ready.features,
                &options,
                &plan,
                &ledger,
                resume,
                last,
            )
        };
        let whole = done(go(None, usize::MAX));
        for last in 1..=3 {
            let forest = match go(None, last).unwrap() {
                Outcome::Stopped(forest) => forest.expect("some rounds were done"),
                found => panic!("{found:?}"),
            };
            assert_eq!(forest.n_rounds(), last);
            let written = serde_json::to_string(&forest).unwrap();
            let read: Forest = serde_json::from_str(&written).unwrap();
            assert_eq!(read, *forest, "a forest survives JSON bit for bit");
            assert_eq!(
                done(go(Some(&read), usize::MAX)),
                whole,
                "{kind:?} resumed after {last}"
            );
        }
        assert_eq!(ledger.used(), 0);
    }
}

#[test]
fn another_forest_is_not_resumed() {
    let (problem, options) = few(Kind::Number, Growth::Depth);
    let ready = ready(&problem);
    let plan = boost::plan(&ready.shape, &options, 1, ROOMY).unwrap();
    let ledger = Ledger::new(ROOMY);
    let mut forest = done(run(
        &ready.rows,
        &ready.features,
        &options,
        &plan,
        &ledger,
        None,
        usize::MAX,
    ))
    .forest;
    forest.base[0] += 1.0;
    let found = run(
        &ready.rows,
        &ready.features,
        &options,
        &plan,
        &ledger,
        Some(&forest),
        usize::MAX,
    );
    assert!(
        matches!(found, Err(tidegate_train::Error::OtherCheckpoint { .. })),
        "{found:?}"
    );
}

#[test]
fn samples_follow_the_seed() {
    let (problem, options) = few(Kind::Two, Growth::Depth);
    let fit = |seed| {
        problem
            .fit(&Options {
                seed,
                ..options.clone()
            })
            .forest
    };
    assert_eq!(fit(1), fit(1));
    assert_ne!(fit(1), fit(2));
}

#[test]
fn a_budget_that_is_too_small_is_refused_with_the_least_that_would_do() {
    let (problem, options) = few(Kind::Two, Growth::Depth);
    let ready = ready(&problem);
    let found = boost::plan(&ready.shape, &options, 4, 100_000);
    let Err(tidegate_train::Error::BudgetTooSmall { least, budget, .. }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(budget, 100_000);
    let plan = boost::plan(&ready.shape, &options, 4, least).unwrap();
    assert_eq!((plan.total(), plan.threads, plan.kept.bins), (least, 1, 0));
    assert!(boost::plan(&ready.shape, &options, 4, least - 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any small table: numbers and bins lead to the same leaves, and histograms taken by difference to the same
    /// trees as histograms added up one by one.
    #[test]
    fn any_table_is_the_same_in_numbers_and_bins(
        cells in prop::collection::vec(prop::option::weighted(0.8, -4i8..5), 40..400),
        two in any::<bool>(),
        l2 in 0.0..2.0,
        leaf in any::<bool>(),
    ) {
        let rows: Vec<Vec<f32>> = cells
            .chunks_exact(4)
            .map(|row| row[..3].iter().map(|cell| cell.map_or(f32::NAN, f32::from)).collect())
            .collect();
        let target = |row: &[Option<i8>]| f32::from(row[3].unwrap_or(1));
        let target = cells.chunks_exact(4).map(target);
        let problem = Problem {
            target: target.map(|y| if two { f32::from(u8::from(y > 0.0)) } else { y }).collect(),
            held_out: vec![false; rows.len()],
            rows,
            objective: if two { Objective::Logistic } else { Objective::Squared },
        };
        let options = Options {
            trees: 4,
            depth: 4,
            l2,
            min_child_weight: 0.1,
            growth: if leaf { Growth::Leaf } else { Growth::Depth },
            ..Options::new(problem.objective)
        };
        let features = problem.features(255);
        let ledger = Ledger::new(ROOMY);
        let rows = problem.resident(&features, 16, &ledger);
        let shape = problem.shape(&features, 16);
        let roomy = boost::plan(&shape, &options, 2, ROOMY).unwrap();
        let trained = done(run(&rows, &features, &options, &roomy, &ledger, None, usize::MAX));
        let one_by_one = Plan { histograms: 1, packed: 1, ..roomy };
        let again = done(run(&rows, &features, &options, &one_by_one, &ledger, None, usize::MAX));
        prop_assert_eq!(&trained, &again);
        prop_assert!(trained.training_loss.is_finite());
        let (mut by_number, mut by_bin) = ([0.0], [0.0]);
        let extremes = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN, -0.0];
        for row in problem.rows.iter().cloned().chain(extremes.map(|x| vec![x; 3])) {
            trained.forest.margins(&row, &mut by_number);
            trained.forest.margins_binned(&binned(&features, &row), &mut by_bin);
            prop_assert_eq!(by_number[0].to_bits(), by_bin[0].to_bits(), "{:?}", row);
        }
    }
}

#[test]
fn what_saves_most_of_the_disk_stays_in_memory() {
    let shape = Shape::new(800_000, 12);
    let n = shape.n_blocks();
    for objective in [Objective::Logistic, Objective::Softmax(8)] {
        let options = Options::new(objective);
        let whole = boost::plan(&shape, &options, 2, ROOMY).unwrap();
        let streamed = whole.streamed(&options);
        assert_eq!((streamed.rows, streamed.state), (0, 0));
        let plan = |less: u64| boost::plan(&shape, &options, 2, whole.total() - less).unwrap();
        // Labels and margins of classes wait longest to be used again.
        let kept = plan(4_000_000).kept;
        assert!(kept.hot == n && kept.bins == n, "{kept:?}");
        assert!(kept.labels.min(kept.cold) < n, "{kept:?}");
        let half = plan(whole.total() / 2);
        assert!(half.kept.hot == n && half.kept.bins > 0, "{:?}", half.kept);
        let streamed = half.streamed(&options);
        assert!(half.total() + streamed.rows + streamed.state >= whole.total() / 2);
    }
}
