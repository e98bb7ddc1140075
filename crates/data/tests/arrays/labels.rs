//! What the labels are, by their type, shape and values.

use tidegate_data::arrays::{ArrayOptions, LabelOptions, LabelTask, Labels, Scale};
use tidegate_data::target::Target;

use crate::help::{Folder, npy, pixels, targets, told};

/// Labels of 4 samples, unless the shape says otherwise.
fn with(
    descr: &str,
    shape: &[usize],
    data: Vec<u8>,
    labels: LabelOptions,
) -> Result<(Labels, Vec<f32>), (String, String)> {
    let n = shape[0];
    let folder = Folder::new(&[
        ("x.npy", npy("|u1", &[n, 2], &pixels(n, 2))),
        ("y.npy", npy(descr, shape, &data)),
    ]);
    let options = ArrayOptions {
        labels,
        ..ArrayOptions::default()
    };
    match folder.open_with("x.npy", &options) {
        Ok(source) => Ok((source.labels().unwrap().clone(), targets(&source))),
        error => Err(told(error)),
    }
}

fn asked(task: LabelTask) -> LabelOptions {
    LabelOptions {
        task: Some(task),
        ..LabelOptions::default()
    }
}

fn freely() -> LabelOptions {
    LabelOptions::default()
}

fn of(n_classes: usize) -> LabelOptions {
    LabelOptions {
        n_classes: Some(n_classes),
        ..LabelOptions::default()
    }
}

fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Classes as texts, and the class of each sample.
fn check_classes(found: Result<(Labels, Vec<f32>), (String, String)>, classes: &[&str], values: &[f32]) {
    let (labels, found) = found.unwrap();
    let texts: Vec<&str> = labels.classes().iter().map(|label| label.text.as_str()).collect();
    assert_eq!((texts.as_slice(), found.as_slice()), (classes, values));
    assert_eq!(
        matches!(labels, Labels::One(Target::Binary { .. })),
        classes.len() == 2
    );
    assert_eq!(labels.width(), 1);
}

#[track_caller]
fn check_error(found: Result<(Labels, Vec<f32>), (String, String)>, expected: &str) {
    let (error, hint) = found.unwrap_err();
    assert!(error.ends_with(expected), "{error}");
    assert!(!hint.is_empty(), "{error}");
}

fn flags(width: usize) -> Labels {
    let names = Vec::new();
    Labels::Flags { width, names }
}

#[test]
fn integers_are_classes_in_their_order() {
    check_classes(
        with("<i8", &[4], i64s(&[7, -1, 10, 7]), freely()),
        &["-1", "7", "10"],
        &[1.0, 0.0, 2.0, 1.0],
    );
    check_classes(
        with("<i8", &[4], i64s(&[1, 0, 0, 1]), freely()),
        &["0", "1"],
        &[1.0, 0.0, 0.0, 1.0],
    );
    // As Keras has them: a column.
    check_classes(
        with("<i8", &[3, 1], i64s(&[2, 0, 1]), freely()),
        &["0", "1", "2"],
        &[2.0, 0.0, 1.0],
    );
    // Larger than a float can tell apart.
    let large = i64s(&[i64::MAX, i64::MAX - 1, i64::MIN]);
    let (labels, values) = with("<i8", &[3], large, freely()).unwrap();
    assert_eq!((labels.classes().len(), values), (3, vec![2.0, 1.0, 0.0]));
}

#[test]
fn booleans_and_texts_are_classes() {
    check_classes(
        with("|b1", &[3], vec![1, 0, 1], freely()),
        &["false", "true"],
        &[1.0, 0.0, 1.0],
    );
    let texts = b"dog\0cat\0emu\0cat\0".to_vec();
    check_classes(
        with("|S4", &[4], texts, freely()),
        &["cat", "dog", "emu"],
        &[1.0, 0.0, 2.0, 0.0],
    );
    let letters: Vec<char> = "añb\0añ".chars().collect();
    for (descr, bytes) in [
        (
            "<U2",
            letters
                .iter()
                .flat_map(|letter| (*letter as u32).to_le_bytes())
                .collect::<Vec<u8>>(),
        ),
        (
            ">U2",
            letters
                .iter()
                .flat_map(|letter| (*letter as u32).to_be_bytes())
                .collect(),
        ),
    ] {
        check_classes(with(descr, &[3], bytes, freely()), &["añ", "b"], &[0.0, 1.0, 0.0]);
    }
    // Numbers in texts are in the order of numbers.
    check_classes(
        with("|S2", &[3], b"109\08\0".to_vec(), freely()),
        &["8", "9", "10"],
        &[2.0, 1.0, 0.0],
    );
}

#[test]
fn floats_are_a_number_unless_classes_are_asked_for() {
    let (labels, values) = with("<f4", &[4], f32s(&[1.0, 2.0, 3.0, 2.0]), freely()).unwrap();
    let Labels::One(Target::Number { mean, deviation }) = labels else {
        panic!("{labels:?}")
    };
    assert_eq!((mean, deviation), (2.0, 0.5f64.sqrt()));
    assert_eq!(values, [1.0, 2.0, 3.0, 2.0]);
    let floats = || f32s(&[1.0, 2.5, -3.0, 2.5]);
    check_classes(
        with("<f4", &[4], floats(), asked(LabelTask::Multiclass)),
        &["-3", "1", "2.5"],
        &[1.0, 2.0, 0.0, 2.0],
    );
    check_classes(
        with("<f4", &[2], f32s(&[1.0, 0.0]), of(3)),
        &["0", "1", "2"],
        &[1.0, 0.0],
    );
    let (labels, _) = with("<i8", &[3], i64s(&[1, 5, 9]), asked(LabelTask::Regression)).unwrap();
    assert!(matches!(labels, Labels::One(Target::Number { .. })));
}

#[test]
fn rows_with_a_single_one_are_classes() {
    let rows = vec![0, 1, 0, 1, 0, 0, 0, 0, 1];
    check_classes(
        with("|u1", &[3, 3], rows.clone(), freely()),
        &["0", "1", "2"],
        &[1.0, 0.0, 2.0],
    );
    check_classes(
        with("|b1", &[3, 3], rows.clone(), of(3)),
        &["0", "1", "2"],
        &[1.0, 0.0, 2.0],
    );
    check_classes(
        with("<f4", &[2, 2], f32s(&[0.0, 1.0, 1.0, 0.0]), freely()),
        &["0", "1"],
        &[1.0, 0.0],
    );
    let (labels, values) = with("|u1", &[3, 3], rows.clone(), asked(LabelTask::Flags)).unwrap();
    assert_eq!((labels, values.len()), (flags(3), 9));
    check_error(
        with("|u1", &[3, 3], rows.clone(), of(4)),
        "labels have 3 values for each sample where 4 are expected",
    );
    check_error(
        with("|u1", &[3, 3], rows, asked(LabelTask::Binary)),
        "y.npy: has 3 classes, not two",
    );
}

#[test]
fn other_rows_of_zeros_and_ones_are_flags() {
    let rows = vec![0, 1, 1, 0, 0, 0];
    let (labels, values) = with("|u1", &[3, 2], rows.clone(), freely()).unwrap();
    assert_eq!(labels, flags(2));
    assert_eq!(values, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    check_error(
        with("|u1", &[3, 2], rows, asked(LabelTask::Multiclass)),
        "row 2 of the labels is not one 1 among zeros",
    );
    check_error(
        with("|u1", &[2, 2], vec![0, 1, 2, 0], asked(LabelTask::Flags)),
        "row 1 of the labels holds 2, not only 0 and 1",
    );
}

#[test]
fn other_rows_are_several_numbers() {
    let (labels, values) = with("<f4", &[2, 2], f32s(&[0.5, 10.0, 1.5, 10.0]), freely()).unwrap();
    let scales = vec![
        Scale {
            mean: 1.0,
            deviation: 0.5,
        },
        Scale {
            mean: 10.0,
            deviation: 1.0,
        },
    ];
    assert_eq!(
        (labels, values),
        (Labels::Numbers { scales }, vec![0.5, 10.0, 1.5, 10.0])
    );
    let one_hot = vec![0, 1, 1, 0];
    let (labels, _) = with("|u1", &[2, 2], one_hot, asked(LabelTask::Regression)).unwrap();
    assert_eq!(labels.width(), 2);
    assert!(matches!(labels, Labels::Numbers { .. }));
}

#[test]
fn labels_that_cannot_be_learned_are_refused() {
    let f = |values: &[f32]| f32s(values);
    check_error(
        with("<f4", &[3], f(&[1.0, f32::NAN, 2.0]), freely()),
        "label 1 is NaN, which is no finite number",
    );
    check_error(
        with("<f4", &[2, 2], f(&[1.0, 0.0, f32::INFINITY, 2.0]), freely()),
        "label 1 is inf, which is no finite number",
    );
    let large = [1.0f64, 1e300]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let (error, _) = with("<f8", &[2], large, freely()).unwrap_err();
    assert!(error.contains("label 1 is 1000000000"), "{error}");
    check_error(
        with("<f4", &[2], f(&[3.5, 3.5]), freely()),
        "y.npy: all labels are 3.5",
    );
    check_error(
        with("<i8", &[2], i64s(&[4, 4]), freely()),
        "y.npy: all labels are 4",
    );
    check_error(
        with("|u1", &[2, 2], vec![0, 1, 0, 1], freely()),
        "y.npy: all labels are 1",
    );
    check_error(with("<i8", &[1], i64s(&[4]), freely()), "y.npy: all labels are 4");
    check_error(
        with("<i8", &[3], i64s(&[0, 1, -1]), of(3)),
        "label 2 is -1, and with 3 classes they go from 0 to 2",
    );
    check_error(
        with("<i8", &[3], i64s(&[0, 3, 1]), of(3)),
        "label 1 is 3, and with 3 classes they go from 0 to 2",
    );
    check_error(
        with("<i8", &[3], i64s(&[0, i64::MAX, 1]), of(3)),
        "and with 3 classes they go from 0 to 2",
    );
    check_error(
        with("<f4", &[2], f(&[0.0, 1.5]), of(3)),
        "label 1 is 1.5, and with 3 classes they go from 0 to 2",
    );
    check_error(
        with("<i8", &[3], i64s(&[0, 3, 1]), asked(LabelTask::Binary)),
        "y.npy: has 3 classes, not two",
    );
    check_error(
        with("|S1", &[2], b"ab".to_vec(), asked(LabelTask::Regression)),
        "labels are texts, such as \"a\", not numbers",
    );
    check_error(
        with("|u1", &[2, 2, 2], vec![0; 8], freely()),
        "labels of shape 2×2×2 are neither one value nor one row for each sample",
    );
    check_error(
        with("|S1", &[2, 2], b"abcd".to_vec(), freely()),
        "labels of shape 2×2 are neither one value nor one row for each sample",
    );
    check_error(
        with("<c8", &[2], vec![0; 16], freely()),
        "y.npy: holds <c8, not numbers",
    );
    let many: Vec<u8> = (0..70_000u32).flat_map(|value| value.to_le_bytes()).collect();
    check_error(
        with("<u4", &[70_000], many, freely()),
        "y.npy: has more than 65536 different labels",
    );
}

#[test]
fn classes_may_be_more_than_the_labels_show() {
    check_classes(
        with("<i8", &[3], i64s(&[3, 0, 0]), of(5)),
        &["0", "1", "2", "3", "4"],
        &[3.0, 0.0, 0.0],
    );
}

#[test]
fn labels_of_a_model_decide() {
    let known = |labels: Labels| LabelOptions {
        known: Some(labels),
        ..freely()
    };
    let (animals, _) = with("|S3", &[3], b"catdogemu".to_vec(), freely()).unwrap();
    check_classes(
        with("|S3", &[2], b"emuemu".to_vec(), known(animals.clone())),
        &["cat", "dog", "emu"],
        &[2.0, 2.0],
    );
    check_error(
        with("|S3", &[2], b"emufox".to_vec(), known(animals)),
        "label 1 is \"fox\", and the classes are \"cat\", \"dog\", \"emu\"",
    );
    let (digits, _) = with("<i8", &[3], i64s(&[3, 5, 9]), freely()).unwrap();
    check_classes(
        with("<f4", &[2], f32s(&[9.0, 5.0]), known(digits.clone())),
        &["3", "5", "9"],
        &[2.0, 1.0],
    );
    check_classes(
        with("|u1", &[2, 3], vec![0, 1, 0, 0, 1, 0], known(digits.clone())),
        &["3", "5", "9"],
        &[1.0, 1.0],
    );
    check_error(
        with("|u1", &[2, 2], vec![0, 1, 0, 1], known(digits)),
        "labels have 2 values for each sample where 3 are expected",
    );
    let (yes, _) = with("|b1", &[2], vec![0, 1], freely()).unwrap();
    check_classes(
        with("|b1", &[2], vec![1, 1], known(yes)),
        &["false", "true"],
        &[1.0, 1.0],
    );
    let number = Labels::One(Target::Number {
        mean: 0.0,
        deviation: 1.0,
    });
    let (labels, values) = with("<i8", &[2], i64s(&[4, 4]), known(number.clone())).unwrap();
    assert_eq!((labels, values), (number, vec![4.0, 4.0]));
}
