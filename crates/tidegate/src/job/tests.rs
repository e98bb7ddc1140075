//! Jobs as their files tell them, and what is refused of them.

use tidegate_train::network::{Rule, Schedule};

use super::*;

#[test]
fn a_job_comes_back_from_its_file() {
    let mut job = Job::new(vec!["/data/flights.csv".into()], "delayed");
    job.memory = Some("1GB".parse().unwrap());
    job.data.quote = Some("none".into());
    job.model.task = Some(tidegate_data::target::Task::Binary);
    let read: Job = toml::from_str(&job.to_toml()).unwrap();
    assert_eq!(read, job);
}

#[test]
fn a_short_job_file_is_filled_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(
        &path,
        "memory = \"1GB\"\n[data]\npath = \"a.csv\"\ntarget = \"y\"\n",
    )
    .unwrap();
    let job = Job::read(&path).unwrap();
    assert_eq!(job.data.paths, [folder.path().join("a.csv")]);
    assert_eq!((job.train.epochs, job.model.kind), (5, ModelKind::Auto));
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(&path, "[data]\npath = \"a.csv\"\ntarget = \"y\"\nbatch = 3\n").unwrap();
    let error = Job::read(&path).unwrap_err();
    assert!(
        error.to_string().contains("line 4: unknown field `batch`"),
        "{error}"
    );
}

/// Reads a job out of a text, with a table and an array at hand.
fn job(text: &str) -> Result<Job> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.csv"), "x,y\n1,2\n").unwrap();
    std::fs::create_dir_all(at("mnist/raw")).unwrap();
    for name in ["x.npy", "w.safetensors", "mnist/raw/train-images-idx3-ubyte.gz"] {
        std::fs::write(at(name), "not read").unwrap();
    }
    std::fs::write(at("job.toml"), text).unwrap();
    let job = Job::read(&at("job.toml"))?;
    job.check()?;
    let text = job.to_toml();
    assert_eq!(toml::from_str::<Job>(&text).unwrap(), job, "{text}");
    Ok(job)
}

/// A job on an array, with these keys of `[model]` and of `[train]`.
fn network(model: &str, train: &str) -> Result<Job> {
    job(&format!(
        "[data]\npath = \"x.npy\"\n[model]\n{model}\n[train]\n{train}\n"
    ))
}

/// What is wrong with it, without the path of the job file, and the hint.
fn wrong(job: Result<Job>) -> String {
    let error = job.unwrap_err();
    let text = error.to_string();
    let text = text
        .split_once("job.toml: ")
        .map_or(text.as_str(), |(_, what)| what);
    match &error {
        Error::Usage { hint, .. } => format!("{text} | {hint}"),
        _ => text.into(),
    }
}

#[test]
fn a_job_file_lists_the_layers_of_a_network() {
    let text = r#"
        [data]
        path = "x.npy"
        validation = "mnist"
        samples = "x"
        map = true
        [model]
        layers = [
          { conv = 32, kernel = 3, activation = "relu" }, { max_pool = 2 },
          "flatten", { dense = 128, activation = "relu", name = "head" }, { dense = "classes" },
        ]
        weights = "w.safetensors"
        freeze = ["0", "head"]
        [train]
        batch = 32
        accumulate = 4
        warm_up = 0.5
        clip = 1.0
        smoothing = 0.1
    "#;
    let job = job(text).unwrap();
    assert_eq!((job.model.kind, job.model.layers.len()), (ModelKind::Network, 5));
    assert!(job.is_network());
    assert_eq!((job.train.batch, job.train.accumulate), (Some(32), 4));
    assert_eq!(job.model.learning_rate(), 0.001);
    let weights = job.model.weights.as_ref().unwrap();
    assert!(weights.is_absolute() && weights.ends_with("w.safetensors"));
    assert!(job.data.validation.unwrap().is_absolute());
    assert!(
        wrong(network("layers = [{ dens = 3 }]", ""))
            .starts_with("line 4: unknown layer \"dens\"; there are dense")
    );
}

#[test]
fn layers_go_with_no_other_kind() {
    let layers = "layers = [\"flatten\", { dense = \"classes\" }]";
    for kind in ["boost", "cnn"] {
        let text =
            format!("[data]\npath = \"a.csv\"\ntarget = \"y\"\n[model]\nkind = \"{kind}\"\n{layers}\n");
        assert_eq!(
            wrong(job(&text)),
            format!(
                "layers make a network of their own, and the model is {kind} | leave the layers out, or give kind = \"network\""
            )
        );
    }
    network(&format!("kind = \"network\"\n{layers}"), "").unwrap();
    assert!(wrong(network("kind = \"network\"", "")).starts_with("a network needs its layers | list them"));
}

#[test]
fn optimizers_schedules_and_losses_are_words_or_tables() {
    let train = |text: &str| network("kind = \"cnn\"", text).unwrap().train;
    assert_eq!(train("optimizer = \"adam\""), TrainPart::default());
    let momentum = 0.9;
    let sgd = Rule::Sgd {
        momentum,
        nesterov: false,
        weight_decay: 0.0,
    };
    assert_eq!(
        train("optimizer = { kind = \"sgd\", momentum = 0.9 }").optimizer,
        sgd
    );
    assert!(matches!(
        train("optimizer = \"adamw\"").optimizer,
        Rule::AdamW {
            weight_decay: 0.01,
            ..
        }
    ));
    assert_eq!(
        train("[train.optimizer]\nkind = \"sgd\"\nmomentum = 0.9").optimizer,
        sgd
    );
    assert_eq!(train("").schedule(), Schedule::Constant);
    assert_eq!(
        train("schedule = \"cosine\"").schedule(),
        Schedule::Cosine { end: 0.0 }
    );
    let step = |epochs, factor| Schedule::Step { epochs, factor };
    assert_eq!(
        train("schedule = \"step\"\nepochs = 8\nwarm_up = 2").schedule(),
        step(2.0, 0.1)
    );
    assert_eq!(
        train("schedule = { kind = \"step\", epochs = 3, factor = 0.5 }").schedule(),
        step(3.0, 0.5)
    );
    assert_eq!(train("loss = \"huber\"").loss, Some(Loss::Huber { delta: 1.0 }));
    let weights = train("loss = { kind = \"cross_entropy\", class_weights = [1, 2.5] }").loss;
    assert!(matches!(weights, Some(Loss::CrossEntropy { class_weights, .. }) if class_weights == [1.0, 2.5]));
}

#[test]
fn a_job_says_by_a_word_what_a_word_can_say() {
    let job = network(
        "kind = \"cnn\"",
        "optimizer = { kind = \"sgd\", momentum = 0.9 }\nschedule = \"step\"\nloss = { kind = \"mse\" }\n\
         moments = \"8bit\"\nprecision = \"f16\"",
    );
    let text = job.unwrap().to_toml();
    for line in [
        "schedule = \"step\"",
        "loss = \"mse\"",
        "momentum = 0.9\n",
        "moments = \"8bit\"\nprecision = \"f16\"\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let plain = Job::new(vec!["a.csv".into()], "y").to_toml();
    assert!(
        plain.contains(
            "optimizer = \"adam\"\nmoments = \"auto\"\nprecision = \"auto\"\nrecompute = \"auto\"\nschedule = \"constant\"\n"
        ),
        "{plain}"
    );
    for key in ["layers", "loss", "clip", "learning_rate", "validation", "map"] {
        assert!(!plain.contains(key), "{key} in {plain}");
    }
}

#[test]
fn what_is_no_optimizer_schedule_or_loss_says_what_there_is() {
    let of = |train: &str| wrong(network("kind = \"cnn\"", train));
    assert_eq!(
        of("optimizer = \"adamm\""),
        "line 6: unknown optimizer \"adamm\"; there are sgd, adam, adamw, rmsprop"
    );
    assert_eq!(
        of("optimizer = 3"),
        "line 6: optimizer is a word or a table, not 3"
    );
    assert_eq!(
        of("optimizer = { momentum = 0.9 }"),
        "line 6: optimizer has no kind; there are sgd, adam, adamw, rmsprop"
    );
    assert_eq!(
        of("optimizer = { kind = \"sgd\", momentm = 0.9 }"),
        "line 6: optimizer: unknown field `momentm`, expected one of `momentum`, `nesterov`, `weight_decay`"
    );
    assert_eq!(
        of("schedule = \"linear\""),
        "line 6: unknown schedule \"linear\"; there are constant, cosine, step, one_cycle"
    );
    assert_eq!(
        of("schedule = { kind = \"step\" }"),
        "line 6: schedule: missing field `epochs`"
    );
    assert_eq!(
        of("loss = { kind = \"mse\", delta = 2 }"),
        "line 6: loss: mse has no delta"
    );
    assert_eq!(
        of("moments = \"f16\""),
        "line 6: unknown moments \"f16\"; there are auto, f32, bf16, 8bit"
    );
    assert_eq!(
        of("precision = 16"),
        "line 6: unknown precision 16; there are auto, f32, bf16, f16"
    );
    assert_eq!(
        of("loss = \"l1\""),
        "line 6: unknown loss \"l1\"; there are cross_entropy, binary, mse, mae, huber"
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    let share = "is not a share | give 0 or more, below 1";
    for (train, expected) in [
        ("batch = 0", "--batch 0 is out of range | give 1 to 1000000".to_string()),
        ("accumulate = 0", "--accumulate 0 is out of range | give 1 to 1000000".into()),
        ("smoothing = 1.0", format!("--smoothing 1 {share}")),
        ("clip = 0.0", "--clip 0 is not a norm | give more than 0, or leave it out".into()),
        ("warm_up = 5.0", "--warm-up 5 leaves nothing of 5 epochs | give 0 or more, fewer than --epochs".into()),
        ("warm_up = nan", "--warm-up NaN leaves nothing of 5 epochs | give 0 or more, fewer than --epochs".into()),
        ("optimizer = { kind = \"sgd\", momentum = 1.0 }", format!("--momentum 1 {share}")),
        ("optimizer = { kind = \"adam\", beta2 = -1.0 }", format!("the optimizer's beta2 -1 {share}")),
        (
            "optimizer = { kind = \"adamw\", weight_decay = -0.5 }",
            "--weight-decay -0.5 is not a penalty | give 0 or more; 0.0001 is usual".into(),
        ),
        (
            "optimizer = { kind = \"rmsprop\", epsilon = 0.0 }",
            "the optimizer's epsilon 0 is out of range | give a little more than 0; 1e-8 is the default".into(),
        ),
        (
            "optimizer = { kind = \"sgd\", nesterov = true }",
            "nesterov is a way of momentum, and there is none | give the optimizer a momentum, such as 0.9".into(),
        ),
        (
            "schedule = { kind = \"step\", epochs = 0 }",
            "the schedule's epochs 0 is out of range | give more than 0".into(),
        ),
        (
            "schedule = { kind = \"one_cycle\", rise = 1.0 }",
            "the schedule's rise 1 is out of range | give 0 or more, below 1; 0.3 is the default".into(),
        ),
        (
            "loss = { kind = \"huber\", delta = -1.0 }",
            "the loss's delta -1 is not a distance | give more than 0; 1 is the default".into(),
        ),
        (
            "loss = \"mae\"\nsmoothing = 0.1",
            "--smoothing is of cross-entropy, and the loss is mae | leave it out, or give --loss cross_entropy".into(),
        ),
    ] {
        assert_eq!(wrong(network("kind = \"cnn\"", train)), expected, "{train}");
    }
    assert_eq!(
        wrong(network("learning_rate = 0.0", "")),
        "--learning-rate 0 would not learn | give more than 0, at most 10; 0.001 is the default"
    );
}

#[test]
fn options_of_another_kind_of_model_are_refused() {
    assert_eq!(
        wrong(network("kind = \"cnn\"\ntrees = 50", "")),
        "--trees is for boosted trees, not for networks | leave it out, or give --model boost"
    );
    assert_eq!(
        wrong(network("kind = \"mlp\"\nl2 = 0.5", "")),
        "--l2 is a penalty of other models, not of networks | networks have --weight-decay"
    );
    let table = |model: &str, train: &str| {
        job(&format!(
            "[data]\npath = \"a.csv\"\ntarget = \"y\"\n[model]\n{model}\n[train]\n{train}\n"
        ))
    };
    let hint = "leave it out, or give a network: --model mlp";
    for (model, train, option) in [
        ("kind = \"boost\"\nweights = \"w.safetensors\"", "", "--weights"),
        ("", "batch = 32", "--batch"),
        ("kind = \"linear\"", "optimizer = \"sgd\"", "--optimizer"),
    ] {
        assert_eq!(
            wrong(table(model, train)),
            format!("{option} is for networks | {hint}")
        );
    }
    table("kind = \"mlp\"", "batch = 32").unwrap();
    assert_eq!(
        wrong(table("kind = \"cnn\"", "")),
        "cnn is for arrays of images, and the data are a table | give --model mlp, or list layers in a job file"
    );
    let boost = wrong(network("kind = \"boost\"", ""));
    assert!(
        boost.contains("x.npy: arrays are for networks, and the model is boost"),
        "{boost}"
    );
}

#[test]
fn only_arrays_need_no_target() {
    let data = |keys: &str| job(&format!("[data]\n{keys}\n"));
    assert_eq!(
        wrong(data("path = \"a.csv\"")),
        "which column is to be predicted? | say --target COLUMN"
    );
    for path in ["x.npy", "mnist", "mnist/raw/train-images-idx3-ubyte.gz"] {
        let job = data(&format!("path = \"{path}\"")).unwrap();
        assert_eq!((job.model.kind, job.data.target.as_str()), (ModelKind::Auto, ""));
    }
    assert_eq!(
        wrong(data("path = \"a.csv\"\ntarget = \"y\"\nsamples = \"x\"")),
        "--samples is for arrays, and the data are a table | leave it out"
    );
    assert_eq!(
        wrong(data("path = \"x.npy\"\nwhere = \"x > 1\"")),
        "--where is for tables, and the data are arrays | leave it out"
    );
    assert!(wrong(data("path = [\"x.npy\", \"mnist\"]")).contains("arrays are named one at a time"));
    let mixed = wrong(data("path = [\"x.npy\", \"a.csv\"]\ntarget = \"y\""));
    assert!(
        mixed.starts_with("arrays and tables do not go together"),
        "{mixed}"
    );
    assert!(wrong(data("path = \"y.npy\"")).contains("y.npy: no such file"));
    assert!(wrong(data("path = \"x.npy\"\nvalidation = \"none\"")).contains("none: no such file"));
    assert!(
        wrong(network("kind = \"mlp\"\nweights = \"v.safetensors\"", ""))
            .contains("v.safetensors: no such file")
    );
}

#[test]
fn a_loss_suits_its_task() {
    let loss = |train: &str, task| network("kind = \"mlp\"", train).unwrap().check_loss_for(task);
    for (train, task) in [
        ("", Task::Binary),
        ("loss = \"mae\"", Task::Regression),
        ("loss = \"binary\"", Task::Binary),
        ("smoothing = 0.25", Task::Multiclass),
    ] {
        assert!(loss(train, task).is_ok(), "{train} {task:?}");
    }
    for (train, task) in [
        ("loss = \"mse\"", Task::Multiclass),
        ("loss = \"binary\"", Task::Multiclass),
        ("loss = \"huber\"", Task::Binary),
        ("loss = \"cross_entropy\"", Task::Regression),
        ("smoothing = 0.1", Task::Regression),
    ] {
        assert!(loss(train, task).is_err(), "{train} {task:?}");
    }
    assert_eq!(
        wrong(network("kind = \"mlp\"\ntask = \"multiclass\"", "loss = \"mse\"")),
        "--loss mse is not for one of several values | give cross_entropy, or leave it out"
    );
}
