//! Writing a forest as the JSON model that XGBoost reads.
//!
//! The margins that a forest starts from are added to the leaves of its first round, because what XGBoost
//! stores for them has changed its form between versions, is one number for all classes in some, and is a
//! probability for two values, which rounds where log-odds are large.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::FeatureBins;
use super::forest::{Forest, Tree};
use super::objective::Objective;

/// What XGBoost writes for the parent of the root.
const NO_PARENT: i32 = i32::MAX;

/// The model as XGBoost 2.1 and later read it from a `.json` file. It is written tree by tree, so that a large forest
/// takes no memory beside itself.
pub fn to_xgboost(forest: &Forest) -> impl Serialize + '_ {
    let n_outputs = forest.n_outputs();
    // Without a tree there would be nothing to add the start to.
    let trunks = vec![trunk(); if forest.trees.is_empty() { n_outputs } else { 0 }];
    let n_trees = forest.trees.len() + trunks.len();
    let rounds = (0..=n_trees / n_outputs).map(|round| round * n_outputs);
    let classes = (0..n_trees).map(|tree| tree % n_outputs);
    let names: Vec<String> = forest
        .features
        .iter()
        .map(|feature| allowed(&feature.name))
        .collect();
    let kind = |feature: &FeatureBins| if feature.categorical { "c" } else { "float" };
    let types: Vec<&str> = forest.features.iter().map(kind).collect();
    let (objective, base_score, n_classes) = match forest.objective {
        Objective::Squared => (
            with_parameter("reg:squarederror", "reg_loss_param", "scale_pos_weight", 1),
            "0E0",
            0,
        ),
        // Log-odds of 0.
        Objective::Logistic => (
            with_parameter("binary:logistic", "reg_loss_param", "scale_pos_weight", 1),
            "5E-1",
            0,
        ),
        Objective::Softmax(n) => (
            with_parameter("multi:softprob", "softmax_multiclass_param", "num_class", n),
            "0E0",
            n,
        ),
    };
    Document {
        learner: Learner {
            attributes: json!({}),
            feature_names: names,
            feature_types: types,
            gradient_booster: Booster {
                model: BoosterModel {
                    gbtree_model_param: json!({ "num_parallel_tree": "1", "num_trees": n_trees.to_string() }),
                    iteration_indptr: rounds.collect(),
                    tree_info: classes.collect(),
                    trees: Trees { forest, trunks },
                },
                name: "gbtree",
            },
            learner_model_param: json!({
                "base_score": base_score,
                "boost_from_average": "1",
                "num_class": n_classes.to_string(),
                "num_feature": forest.features.len().to_string(),
                "num_target": "1",
            }),
            objective,
        },
        version: [2, 1, 0],
    }
}

#[derive(Serialize)]
struct Document<'f> {
    learner: Learner<'f>,
    version: [u32; 3],
}

#[derive(Serialize)]
struct Learner<'f> {
    attributes: Value,
    feature_names: Vec<String>,
    feature_types: Vec<&'static str>,
    gradient_booster: Booster<'f>,
    learner_model_param: Value,
    objective: Value,
}

#[derive(Serialize)]
struct Booster<'f> {
    model: BoosterModel<'f>,
    name: &'static str,
}

#[derive(Serialize)]
struct BoosterModel<'f> {
    gbtree_model_param: Value,
    iteration_indptr: Vec<usize>,
    tree_info: Vec<usize>,
    trees: Trees<'f>,
}

/// The trees of a forest, made one by one as they are written.
struct Trees<'f> {
    forest: &'f Forest,
    trunks: Vec<Tree>,
}

impl Serialize for Trees<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Forest {
            base,
            trees,
            features,
            ..
        } = self.forest;
        let trees = trees.iter().chain(&self.trunks).enumerate();
        serializer.collect_seq(trees.map(|(i, tree)| {
            let start = if i < base.len() { base[i] } else { 0.0 };
            tree_json(i, tree, start, features)
        }))
    }
}

fn with_parameter(name: &str, group: &str, parameter: &str, value: usize) -> Value {
    json!({ "name": name, group: { parameter: value.to_string() } })
}

/// Names of features may not hold these.
fn allowed(name: &str) -> String {
    name.replace(['[', ']', '<'], "_")
}

/// A tree of a single leaf that adds nothing.
fn trunk() -> Tree {
    Tree {
        feature: vec![0],
        threshold: vec![0.0],
        bin: vec![0],
        default_left: vec![false],
        left: vec![0],
        right: vec![0],
        value: vec![0.0],
        gain: vec![0.0],
        cover: vec![0.0],
        set: vec![0],
        sets: Vec::new(),
    }
}

#[derive(Serialize)]
struct TreeJson<'t> {
    base_weights: &'t [f32],
    categories: Vec<i32>,
    categories_nodes: Vec<i32>,
    categories_segments: Vec<i64>,
    categories_sizes: Vec<i64>,
    default_left: Vec<u8>,
    id: usize,
    left_children: Vec<i32>,
    loss_changes: &'t [f32],
    parents: Vec<i32>,
    right_children: Vec<i32>,
    split_conditions: Vec<f32>,
    split_indices: &'t [u32],
    split_type: Vec<u8>,
    sum_hessian: &'t [f32],
    tree_param: Value,
}

fn tree_json<'t>(id: usize, tree: &'t Tree, base: f32, features: &[FeatureBins]) -> TreeJson<'t> {
    let n = tree.n_nodes();
    let child = |children: &[u32]| -> Vec<i32> {
        let child = |child: &u32| if *child == 0 { -1 } else { *child as i32 };
        children.iter().map(child).collect()
    };
    let mut parents = vec![NO_PARENT; n];
    for node in (0..n).filter(|node| !tree.is_leaf(*node)) {
        parents[tree.left[node] as usize] = node as i32;
        parents[tree.right[node] as usize] = node as i32;
    }
    // A leaf's value stands where a split has its threshold.
    let condition = |node: usize| match tree.is_leaf(node) {
        true => tree.value[node] + base,
        false => tree.threshold[node],
    };
    // XGBoost lists the categories that go to the right.
    let (mut categories, mut categories_nodes) = (Vec::new(), Vec::new());
    let (mut categories_segments, mut categories_sizes) = (Vec::new(), Vec::new());
    for node in (0..n).filter(|node| tree.set[*node] > 0) {
        let set = tree.sets[tree.set[node] as usize - 1];
        let first = categories.len();
        let n_codes = features[tree.feature[node] as usize].n_bins() as i32 - 2;
        categories.extend((0..n_codes).filter(|code| !set.contains((*code + 2) as u8)));
        categories_nodes.push(node as i32);
        categories_segments.push(first as i64);
        categories_sizes.push((categories.len() - first) as i64);
    }
    TreeJson {
        base_weights: &tree.value,
        categories,
        categories_nodes,
        categories_segments,
        categories_sizes,
        default_left: tree.default_left.iter().map(|left| u8::from(*left)).collect(),
        id,
        left_children: child(&tree.left),
        loss_changes: &tree.gain,
        parents,
        right_children: child(&tree.right),
        split_conditions: (0..n).map(condition).collect(),
        split_indices: &tree.feature,
        split_type: tree.set.iter().map(|set| u8::from(*set > 0)).collect(),
        sum_hessian: &tree.cover,
        tree_param: json!({
            "num_deleted": "0",
            "num_feature": features.len().to_string(),
            "num_nodes": n.to_string(),
            "size_leaf_vector": "1",
        }),
    }
}
