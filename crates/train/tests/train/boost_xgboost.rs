//! Forests that XGBoost reads, and the same predictions from it.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tidegate_memory::Ledger;
use tidegate_train::boost::{self, FeatureBins, Forest, Growth, Options, to_xgboost};

use crate::boost_data::{Kind, Problem, ROOMY, done, problem, run};

/// Where `xgboost` can be imported, it must agree with us.
fn check(name: &str, forest: &Forest, problem: &Problem) {
    let folder = tempfile::tempdir().unwrap();
    let (model, rows) = (folder.path().join("model.json"), folder.path().join("rows.json"));
    std::fs::write(&model, serde_json::to_vec(&to_xgboost(forest)).unwrap()).unwrap();
    let mut predicted = vec![0.0; forest.n_outputs()];
    let predicted: Vec<Vec<f32>> = problem
        .rows
        .iter()
        .map(|row| {
            forest.predict(row, &mut predicted);
            predicted.clone()
        })
        .collect();
    // NaN becomes null.
    let data = json!({ "rows": problem.rows, "predicted": predicted });
    std::fs::write(&rows, serde_json::to_vec(&data).unwrap()).unwrap();
    let known = Command::new("python3")
        .args(["-c", "import xgboost, numpy"])
        .output();
    if !known.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no xgboost to compare with");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/train/xgboost_check.py");
    let output = Command::new("python3")
        .arg(script)
        .args([&model, &rows])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}{errors}");
    eprintln!("{name}: {said}");
}

#[test]
fn xgboost_predicts_the_same() {
    for kind in [Kind::Number, Kind::Lognormal, Kind::Two, Kind::Three] {
        let problem = problem(kind, 3_000);
        let options = Options {
            trees: 20,
            growth: if kind == Kind::Two {
                Growth::Leaf
            } else {
                Growth::Depth
            },
            leaves: Some(20),
            ..Options::new(problem.objective)
        };
        check(&format!("{kind:?}"), &problem.fit(&options).forest, &problem);
    }
}

/// Splits of categories into groups, with codes that are missing and codes that training never saw.
#[test]
fn xgboost_groups_categories_the_same() {
    for kind in [Kind::Number, Kind::Two, Kind::Three] {
        let mut problem = problem(kind, 3_000);
        for (i, row) in problem.rows.iter_mut().enumerate() {
            // In no order that a threshold could use.
            row[0] = ((row[0] * 40.0) as usize * 17 % 40) as f32;
            row[1] = match i % 11 {
                0 => f32::NAN,
                _ => ((row[1] * 7.0) as usize * 3 % 7) as f32,
            };
        }
        let mut features = problem.features(255);
        features[0] = FeatureBins::of_categories("city", 40);
        features[1] = FeatureBins::of_categories("day", 7);
        let options = Options {
            trees: 20,
            ..Options::new(problem.objective)
        };
        let ledger = Ledger::new(ROOMY);
        let rows = problem.resident(&features, 4096, &ledger);
        let plan = boost::plan(&problem.shape(&features, 4096), &options, 2, ROOMY).unwrap();
        let forest = done(run(&rows, &features, &options, &plan, &ledger, None, usize::MAX)).forest;
        let groups: usize = forest.trees.iter().map(|tree| tree.sets.len()).sum();
        assert!(groups > 20, "{kind:?}: {groups} groups");
        for row in problem.rows.iter_mut().step_by(7) {
            row[0] = -1.0;
        }
        check(&format!("categories, {kind:?}"), &forest, &problem);
    }
}

/// Extremes: log-odds that a probability cannot hold, a split on being missing alone, no tree at all, and
/// names that XGBoost does not allow.
#[test]
fn xgboost_predicts_the_same_at_the_edges() {
    let mut problem = problem(Kind::Two, 3_000);
    for (row, target) in problem.target.iter_mut().enumerate() {
        *target = f32::from(u8::from(row % 1500 == 7));
    }
    let options = Options {
        trees: 3,
        ..Options::new(problem.objective)
    };
    let mut forest = problem.fit(&options).forest;
    forest.features[0].name = "delay [min] < 3".into();
    check("rare", &forest, &problem);
    forest.trees.clear();
    check("no trees", &forest, &problem);

    for (row, target) in problem.rows.iter().zip(&mut problem.target) {
        *target = f32::from(u8::from(row[7].is_nan()));
    }
    check("missing", &problem.fit(&options).forest, &problem);
}

#[test]
fn the_export_has_what_xgboost_writes() {
    let problem = problem(Kind::Three, 500);
    let options = Options {
        trees: 2,
        depth: 2,
        ..Options::new(problem.objective)
    };
    let forest = problem.fit(&options).forest;
    let model = serde_json::to_value(to_xgboost(&forest)).unwrap();
    let booster = &model["learner"]["gradient_booster"]["model"];
    assert_eq!(booster["tree_info"], json!([0, 1, 2, 0, 1, 2]));
    assert_eq!(booster["iteration_indptr"], json!([0, 3, 6]));
    assert_eq!(model["learner"]["learner_model_param"]["num_class"], "3");
    assert_eq!(model["learner"]["objective"]["name"], "multi:softprob");
    let tree = &booster["trees"][5];
    assert_eq!(tree["left_children"], json!([1, 3, 5, -1, -1, -1, -1]));
    assert_eq!(tree["parents"], json!([2147483647, 0, 0, 1, 1, 2, 2]));
}
