//! Memory that is taken away while trees grow: rows and their state are let go, and the forest stays the same.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tidegate_data::pack::{BinsPack, BinsWriter, PackKey, PackOptions, PackStore};
use tidegate_memory::Ledger;
use tidegate_train::Error;
use tidegate_train::boost::{
    self, BlockBuffer, Blocks, FeatureBins, Growth, Options, Outcome, Part, Plan, Rows, Shape, Trained,
    Training,
};

use crate::boost_data::{Kind, Problem, ROOMY, problem};

const BLOCK_ROWS: usize = 1_000;

struct Ready {
    problem: Problem,
    features: Vec<FeatureBins>,
    shape: Shape,
    options: Options,
}

fn ready(kind: Kind, growth: Growth) -> Ready {
    let problem = problem(kind, 24_300);
    let features = problem.features(64);
    Ready {
        shape: problem.shape(&features, BLOCK_ROWS),
        options: Options {
            trees: 5,
            depth: 4,
            leaves: (growth == Growth::Leaf).then_some(12),
            growth,
            row_sample: 0.8,
            ..Options::new(problem.objective)
        },
        features,
        problem,
    }
}

impl Ready {
    fn plan(&self, threads: usize, budget: u64) -> Plan {
        boost::plan(&self.shape, &self.options, threads, budget).unwrap()
    }

    /// All rows in memory.
    fn whole(&self, ledger: &Ledger) -> Rows {
        Rows::all(self.problem.resident(&self.features, BLOCK_ROWS, ledger))
    }

    /// The rows in a pack, of which the plan keeps some in memory.
    fn packed(&self, plan: &Plan, folder: &Path, ledger: &Ledger) -> Rows {
        let rows = self
            .problem
            .resident(&self.features, BLOCK_ROWS, &Ledger::new(ROOMY));
        let store = PackStore::at(folder);
        let key = PackKey::of(&[b"rows"]);
        let holder = Ledger::new(ROOMY).holder("pack");
        if BinsPack::open(&store, key, self.features.len(), &holder)
            .unwrap()
            .is_none()
        {
            let pack = PackOptions {
                store: PackStore::at(folder),
                key,
                description: "rows".into(),
                n_rows: self.shape.n_rows as u64,
            };
            let mut writer = BinsWriter::create(&pack, self.features.len(), &holder).unwrap();
            let unused = BlockBuffer::default();
            for block in 0..rows.n_blocks() {
                let block = rows.block(block, Part::Whole, &unused);
                writer
                    .push_block(block.bins, block.target, block.held_out)
                    .unwrap();
            }
            writer.finish().unwrap();
        }
        let pack = BinsPack::open(&store, key, self.features.len(), &holder).unwrap();
        Rows::from_pack(pack.unwrap(), plan, ledger).unwrap()
    }

    /// Trains, and hears of every round.
    fn train(
        &self,
        rows: &mut Rows,
        plan: &Plan,
        ledger: &Ledger,
        mut on_round: impl FnMut(usize),
    ) -> Result<Trained, Error> {
        let (stop, folder) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
        let training = Training {
            blocks: rows,
            features: &self.features,
            options: &self.options,
            plan,
            ledger,
            scratch: folder.path(),
            stop: &stop,
        };
        let trained = boost::train(training, None, &mut |round| on_round(round.round));
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "a scratch file has no name");
        trained.map(|outcome| match outcome {
            Outcome::Done(trained) => *trained,
            stopped => panic!("{stopped:?}"),
        })
    }
}

/// Takes away these shares of what could be done without, one behind each round.
fn check(ready: &Ready, expected: &Trained, rows: &mut Rows, plan: &Plan, ledger: &Ledger, shares: &[f64]) {
    let mut told = Vec::new();
    let trained = ready.train(rows, plan, ledger, |round| {
        assert_eq!(ledger.over(), 0, "what was asked for was given back: {told:?}");
        let (used, spare) = (ledger.used(), ledger.spare_bytes());
        told.push((used, spare));
        if let Some(share) = shares.get(round - 1) {
            ledger.lower(used - (spare as f64 * share) as u64);
        }
    });
    assert!(trained.unwrap() == *expected, "another forest: {told:?}");
    assert!(told[0].1 > 0, "there is something to let go: {told:?}");
    assert!(told.is_sorted_by(|a, b| a.0 >= b.0), "{told:?}");
    if shares.contains(&1.0) {
        assert_eq!(told.last().unwrap().1, 0, "all that can go is gone: {told:?}");
        assert_eq!(rows.kept(), (0, 0));
    }
    assert_eq!((ledger.used(), ledger.spare_bytes()), (rows.bytes(), 0));
}

const SHARES: [&[f64]; 4] = [&[1.0], &[0.1, 0.3, 0.5, 1.0], &[0.0, 0.02, 0.0, 0.9], &[0.6]];

#[test]
fn rows_in_memory_are_let_go_and_the_forest_stays_the_same() {
    for (kind, growth) in [
        (Kind::Number, Growth::Depth),
        (Kind::Two, Growth::Leaf),
        (Kind::Three, Growth::Depth),
    ] {
        let ready = ready(kind, growth);
        let roomy = ready.plan(2, ROOMY);
        let mut rows = ready.whole(&Ledger::new(ROOMY));
        let expected = ready
            .train(&mut rows, &roomy, &Ledger::new(ROOMY), |_| {})
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (threads, shares) in [1, 3, 2, 1].into_iter().zip(SHARES) {
            // No pack: what goes is written first.
            let plan = ready.plan(threads, ROOMY);
            let ledger = Ledger::new(ROOMY);
            let mut rows = ready.whole(&ledger);
            check(&ready, &expected, &mut rows, &plan, &ledger, shares);
            // A pack has the rows, and some of them or of their state stream already.
            let least = plan.least(&ready.options).total();
            for part in [3, 6] {
                let plan = ready.plan(threads, least + (plan.total() - least) * part / 8);
                assert!(plan.kept != roomy.kept);
                let ledger = Ledger::new(ROOMY);
                let mut rows = ready.packed(&plan, folder.path(), &ledger);
                check(&ready, &expected, &mut rows, &plan, &ledger, shares);
            }
        }
    }
}

#[test]
fn a_plan_within_less_keeps_less_and_is_never_larger() {
    let ready = ready(Kind::Three, Growth::Depth);
    let plan = ready.plan(2, ROOMY);
    let least = plan.least(&ready.options).total();
    let mut before = plan.clone();
    for step in (0..64).rev() {
        let budget = least + (plan.total() - least) * step / 64;
        let within = before.within(&ready.options, budget).unwrap();
        assert!(within.total() <= budget);
        let (kept, had) = (within.kept, before.kept);
        assert!(kept.bins <= had.bins && kept.labels <= had.labels);
        assert!(kept.hot <= had.hot && kept.cold <= had.cold);
        assert_eq!(
            (within.threads, within.histograms),
            (plan.threads, plan.histograms)
        );
        before = within;
    }
    assert_eq!(before.within(&ready.options, least - 1), None);
}

#[test]
fn rows_that_are_only_lent_stay() {
    let ready = ready(Kind::Number, Growth::Depth);
    let plan = ready.plan(1, ROOMY);
    let ledger = Ledger::new(ROOMY);
    let rows = ready.problem.resident(&ready.features, BLOCK_ROWS, &ledger);
    let mut lent: &dyn Blocks = &rows;
    let (stop, folder) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
    let training = Training {
        blocks: &mut lent,
        features: &ready.features,
        options: &ready.options,
        plan: &plan,
        ledger: &ledger,
        scratch: folder.path(),
        stop: &stop,
    };
    let trained = boost::train(training, None, &mut |_| {
        assert_eq!(ledger.spare_bytes(), 0);
        ledger.lower(ledger.used() / 2);
    });
    assert!(matches!(trained, Ok(Outcome::Done(_))));
    assert_eq!(ledger.used(), rows.bytes());
}

/// Memory is taken away while rows are read: those that were kept go, and the plan follows.
#[test]
fn rows_on_their_way_from_a_pack_are_kept_as_far_as_there_is_room() {
    let ready = ready(Kind::Two, Growth::Depth);
    let roomy = ready.plan(2, ROOMY);
    let ledger = Ledger::new(ROOMY);
    let mut whole = ready.whole(&ledger);
    let expected = ready
        .train(&mut whole, &roomy, &Ledger::new(ROOMY), |_| {})
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let least = roomy.least(&ready.options).total();
    let plans = (0..64).map(|step| ready.plan(2, least + (roomy.total() - least) * step / 64));
    let streams = plans.filter(|plan| !plan.rows_fit());
    let plan = streams.max_by_key(|plan| plan.kept.bins).unwrap();
    assert!(plan.kept.bins > 4, "{plan:?}");
    // Room for less than the plan has: no more is kept than fits.
    let ledger = Ledger::new(plan.bytes(boost::ROWS) / 2);
    let rows = ready.packed(&plan, folder.path(), &ledger);
    let (bins, labels) = rows.kept();
    assert!(
        bins < plan.kept.bins && labels <= bins && bins > 0,
        "{bins} of {plan:?}"
    );
    drop(rows);
    let ledger = Ledger::new(ROOMY);
    let mut rows = ready.packed(&plan, folder.path(), &ledger);
    rows.keep(3, 4, folder.path()).unwrap();
    assert_eq!(rows.kept(), (3, 3.min(plan.kept.labels)));
    assert_eq!(ledger.used(), rows.bytes());
    let fewer = Plan {
        kept: boost::Kept {
            bins: 3,
            labels: 3.min(plan.kept.labels),
            ..plan.kept
        },
        ..plan
    };
    let fewer = fewer.within(&ready.options, ROOMY).unwrap();
    let trained = ready.train(&mut rows, &fewer, &ledger, |_| {}).unwrap();
    assert!(trained == expected);
}
