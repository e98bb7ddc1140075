//! Requests that cannot be meant: refused with exit code 2, before anything is made.

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::binary;

fn refused(options: &str) -> String {
    let place = Place::with(binary());
    let answer = place.run(&format!("train data.csv --target y {options}"));
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    assert!(!place.home.exists(), "a request that cannot work makes no home");
    answer.error()
}

#[test]
fn sizes_that_nobody_can_read() {
    assert_snapshot!(refused("--memory 12XB"), @r"
    exit 2
    error: invalid value '12XB' for '--memory <SIZE>': `12XB` is not an amount of memory: `XB` is not a unit (write `2GB`, `1.5GiB`, `512M` or `80%`); units are B, K, M, G, T (also KB, MB, ...), KiB, MiB, GiB, TiB and %

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--memory lots"), @r"
    exit 2
    error: invalid value 'lots' for '--memory <SIZE>': `lots` is not an amount of memory: it has no number in front (write `2GB`, `1.5GiB`, `512M` or `80%`)

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--memory 0"), @r"
    exit 2
    error: invalid value '0' for '--memory <SIZE>': `0` is not an amount of memory: it is zero, or less than one byte (write `2GB`, `1.5GiB`, `512M` or `80%`)

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--memory 200%"), @r"
    exit 2
    error: invalid value '200%' for '--memory <SIZE>': `200%` is not an amount of memory: it is more than 100% (write `2GB`, `1.5GiB`, `512M` or `80%`); 100% is all that the machine or container allows

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--memory 99999999999999999999GB"), @r"
    exit 2
    error: invalid value '99999999999999999999GB' for '--memory <SIZE>': `99999999999999999999GB` is not an amount of memory: it is more than 18.4 EB can be counted to (write `2GB`, `1.5GiB`, `512M` or `80%`)

    For more information, try '--help'.
    ");
    let place = Place::with(binary());
    assert_snapshot!(place.run_words(&["train", "data.csv", "--target", "y", "--memory", ""]).error(), @r"
    exit 2
    error: invalid value '' for '--memory <SIZE>': `` is not an amount of memory: it is empty (write `2GB`, `1.5GiB`, `512M` or `80%`)

    For more information, try '--help'.
    ");
}

#[test]
fn options_that_make_no_sense() {
    assert_snapshot!(refused("--holdout 1"), @r"
    exit 2
    error: --holdout 1 is not a share of the rows
      hint: 0 holds out nothing, 0.1 every tenth row
    ");
    assert_snapshot!(refused("--holdout NaN"), @r"
    exit 2
    error: --holdout NaN is not a share of the rows
      hint: 0 holds out nothing, 0.1 every tenth row
    ");
    assert_snapshot!(refused("--epochs 0"), @r"
    exit 2
    error: --epochs 0 would learn nothing
      hint: give 1 or more
    ");
    assert_snapshot!(refused("--threads 0"), @r"
    exit 2
    error: --threads 0 would do nothing
      hint: give 1 or more, or leave it out
    ");
    assert_snapshot!(refused("--l2 inf"), @r"
    exit 2
    error: --l2 inf is not a penalty
      hint: give 0 or more; 1 is the default
    ");
    assert_snapshot!(refused("--model forest"), @r"
    exit 2
    error: invalid value 'forest' for '--model <KIND>'
      [possible values: auto, linear, boost, mlp, cnn, resnet18, mobilenet, network]

      tip: a similar value exists: 'resnet18'

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--trees 0"), @r"
    exit 2
    error: a forest needs a tree, a tree a split
      hint: give --trees and --depth of 1 or more, --leaves of 2 or more
    ");
    assert_snapshot!(refused("--depth 17"), @r"
    exit 2
    error: --depth 17 is more than trees may have
      hint: give 16 at the most; --leaves bounds a tree without bounding its depth
    ");
    assert_snapshot!(refused("--leaves 1"), @r"
    exit 2
    error: a forest needs a tree, a tree a split
      hint: give --trees and --depth of 1 or more, --leaves of 2 or more
    ");
    assert_snapshot!(refused("--learning-rate 0"), @r"
    exit 2
    error: --learning-rate 0 would not learn
      hint: give more than 0, at most 10; 0.1 is the default
    ");
    assert_snapshot!(refused("--row-sample 1.5"), @r"
    exit 2
    error: --row-sample 1.5 is not a share
      hint: give more than 0, at most 1
    ");
    assert_snapshot!(refused("--column-sample -0.5"), @r"
    exit 2
    error: --column-sample -0.5 is not a share
      hint: give more than 0, at most 1
    ");
    assert_snapshot!(refused("--patience 5 --holdout 0"), @r"
    exit 2
    error: --patience needs rows to judge by
      hint: hold some out: --holdout 0.1
    ");
    assert_snapshot!(refused("--folds 1"), @r"
    exit 2
    error: --folds is not a number of folds
      hint: give 2 to 100; 5 is usual
    ");
    assert_snapshot!(refused("--sample 0"), @r"
    exit 2
    error: --sample is neither a number of rows nor a share
      hint: give 100000 for so many rows, 0.1 for a tenth of them
    ");
    assert_snapshot!(refused("--where a>"), @r#"
    exit 2
    error: character 3 of the condition "a>": expected a number, a text in quotes, true or false, found the end
      hint: columns stand bare or in backticks, texts in quotes: age >= 18 and `home town` = 'Oslo'
    "#);
    assert_snapshot!(refused("--delimiter ,,"), @r#"
    exit 2
    error: --delimiter ",," is not one ASCII character
      hint: give a character such as --delimiter ';', or tab, space, comma, semicolon, pipe
    "#);
    assert_snapshot!(refused("--quote , --delimiter ,"), @r"
    exit 2
    error: separator and quote are the same character
      hint: if fields are never quoted, say --quote none
    ");
}

#[test]
fn options_of_another_model() {
    assert_snapshot!(refused("--model mlp --trees 50"), @r"
    exit 2
    error: --trees is for boosted trees, not for networks
      hint: leave it out, or give --model boost
    ");
    assert_snapshot!(refused("--moments 8bit"), @r"
    exit 2
    error: --moments is for networks
      hint: leave it out, or give a network: --model mlp
    ");
    assert_snapshot!(refused("--precision f16"), @r"
    exit 2
    error: --precision is for networks
      hint: leave it out, or give a network: --model mlp
    ");
    assert_snapshot!(refused("--batch 32"), @r"
    exit 2
    error: --batch is for networks
      hint: leave it out, or give a network: --model mlp
    ");
    assert_snapshot!(refused("--model mlp --momentum 0.9"), @r"
    exit 2
    error: --momentum is for sgd and rmsprop
      hint: give --optimizer sgd, or leave it out
    ");
    assert_snapshot!(refused("--model mlp --optimizer sgd --momentum 1"), @r"
    exit 2
    error: --momentum 1 is not a share
      hint: give 0 or more, below 1
    ");
    assert_snapshot!(refused("--model mlp --optimizer adamm"), @r"
    exit 2
    error: invalid value 'adamm' for '--optimizer <WORD>'
      [possible values: sgd, adam, adamw, rmsprop]

      tip: a similar value exists: 'adam'

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--model cnn"), @r"
    exit 2
    error: cnn is for arrays of images, and the data are a table
      hint: give --model mlp, or list layers in a job file
    ");
    assert_snapshot!(refused("--weight-decay 0.1"), @r"
    exit 2
    error: --weight-decay is for networks
      hint: leave it out, or give a network: --model mlp
    ");
    assert_snapshot!(refused("--model network"), @r#"
    exit 2
    error: a network needs its layers
      hint: list them in a job file: layers = ["flatten", { dense = 128, activation = "relu" }, { dense = "classes" }]
    "#);
}

#[test]
fn numbers_below_zero() {
    assert_snapshot!(refused("--memory -5MB"), @r"
    exit 2
    error: invalid value '-5MB' for '--memory <SIZE>': `-5MB` is not an amount of memory: it is negative (write `2GB`, `1.5GiB`, `512M` or `80%`)

    For more information, try '--help'.
    ");
    assert_snapshot!(refused("--holdout -1"), @r"
    exit 2
    error: --holdout -1 is not a share of the rows
      hint: 0 holds out nothing, 0.1 every tenth row
    ");
    assert_snapshot!(refused("--l2 -1"), @r"
    exit 2
    error: --l2 -1 is not a penalty
      hint: give 0 or more; 1 is the default
    ");
    assert_snapshot!(refused("--epochs -1"), @r"
    exit 2
    error: unexpected argument '-1' found

      tip: to pass '-1' as a value, use '-- -1'

    Usage: tidegate train [OPTIONS] <DATA>...

    For more information, try '--help'.
    ");
}

#[test]
fn names_that_cannot_name_a_run() {
    let place = Place::with(binary());
    assert_snapshot!(place.run("train data.csv --target y --name last").error(), @r#"
    exit 2
    error: "last" cannot name a run
      hint: use 1 to 64 letters, digits, dots, dashes or underscores, and not "last": --name flights-v2
    "#);
    assert_eq!(place.run("train data.csv --target y --name a/b").code, Some(2));
    assert_eq!(place.run_ids(), Vec::<String>::new());
}

#[test]
fn help_and_version() {
    let place = Place::new();
    assert!(place.ok("--version").stdout.starts_with("tidegate "));
    let help = place.ok("--help").stdout;
    for verb in ["train", "resume", "predict", "runs", "show", "doctor", "demo"] {
        assert!(
            help.contains(&format!("  {verb} ")),
            "{verb} is missing in {help}"
        );
        place.ok(&format!("{verb} --help"));
    }
    assert!(!help.contains("worker"), "the child is not for people");
}
