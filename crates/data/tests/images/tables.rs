//! Tables that list images: which column is what, and what its values mean.

use tidegate_data::Error;
use tidegate_data::arrays::{LabelOptions, LabelTask, Labels};
use tidegate_data::images::{BadFileRule, ImageOptions, OpenedImages};

use crate::draw::Drawing;
use crate::help::{Folder, shown, sized};

/// Six pictures in a folder, and this table beside it.
fn listed(name: &str, text: &str) -> Folder {
    let folder = Folder::new(&[(name, text.as_bytes().to_vec())]);
    for i in 0..6 {
        folder.write(&format!("images/{i}.png"), &Drawing::numbered(i, 10, 10).png());
    }
    folder
}

/// A table of one line for each picture: its path, then these.
fn table(columns: &str, values: [&str; 6]) -> Folder {
    let rows: String = (0..6)
        .map(|i| format!("images/{i}.png,{}\n", values[i]))
        .collect();
    listed("list.csv", &format!("file,{columns}\n{rows}"))
}

fn asked(target: &str) -> ImageOptions {
    ImageOptions {
        target: target.into(),
        ..sized(10)
    }
}

fn tasked(target: &str, task: LabelTask) -> ImageOptions {
    ImageOptions {
        labels: LabelOptions {
            task: Some(task),
            ..LabelOptions::default()
        },
        ..asked(target)
    }
}

fn targets(opened: &OpenedImages) -> Vec<Vec<f32>> {
    let source = &opened.training;
    (0..source.n_samples())
        .map(|sample| source.target(sample).to_vec())
        .collect()
}

fn flat(opened: &OpenedImages) -> Vec<f32> {
    targets(opened).concat()
}

fn classes(opened: &OpenedImages) -> Vec<String> {
    let labels = opened.training.labels().unwrap();
    labels
        .classes()
        .into_iter()
        .map(|label| label.text.clone())
        .collect()
}

const SIX: [&str; 6] = ["cat", "dog", "cat", "emu", "dog", "cat"];

#[test]
fn a_table_says_what_each_image_shows() {
    let tab = |text: &str| text.replace(',', "\t");
    let csv: String = (0..6)
        .map(|i| format!("{},images/{i}.png,{i}.5\n", SIX[i]))
        .collect();
    let csv = format!("kind,path,weight\n{csv}");
    let lines: String = (0..6)
        .map(|i| {
            format!(
                "{{\"kind\": \"{}\", \"path\": \"images/{i}.png\", \"weight\": {i}.5}}\n",
                SIX[i]
            )
        })
        .collect();
    for (name, text) in [
        ("list.csv", csv.clone()),
        ("list.tsv", tab(&csv)),
        ("list.jsonl", lines),
    ] {
        let folder = listed(name, &text);
        // By its name, or in the folder that it is alone in.
        for path in [name, ""] {
            let opened = folder.open_with(path, &asked("kind")).unwrap();
            assert_eq!(classes(&opened), ["cat", "dog", "emu"], "{name}");
            assert_eq!(flat(&opened), [0.0, 1.0, 0.0, 2.0, 1.0, 0.0]);
            for i in 0..6 {
                assert_eq!(
                    opened.training.file(i).unwrap(),
                    folder.path(&format!("images/{i}.png"))
                );
                assert_eq!(shown(&opened.training, i), Drawing::numbered(i, 10, 10).pixels);
            }
        }
    }
}

#[test]
fn paths_are_found_or_named() {
    let folder = listed(
        "list.csv",
        "thumbnail,full,kind\nimages/0.png,images/1.png,a\nimages/2.png,images/3.png,b\n",
    );
    let named = |column: Option<&str>| ImageOptions {
        column: column.map(String::from),
        ..asked("kind")
    };
    let first = |options: &ImageOptions| {
        let opened = folder.open_with("list.csv", options).unwrap();
        opened.training.file(0).unwrap()
    };
    assert_eq!(first(&named(None)), folder.path("images/0.png"));
    assert_eq!(first(&named(Some("full"))), folder.path("images/1.png"));
    let (error, hint) = folder.refused("list.csv", &named(Some("ful")));
    assert_eq!(error, "list.csv: there is no column \"ful\"");
    assert!(hint.contains("\"full\""), "{hint}");
    let (error, hint) = listed("list.csv", "a,b\n1,2\n3,4\n").refused("list.csv", &asked("b"));
    assert_eq!(
        error,
        "list.csv: no column holds paths of images; there are \"a\", \"b\""
    );
    assert!(hint.contains("--images COLUMN"), "{hint}");
}

#[test]
fn the_target_is_the_only_other_column_or_named() {
    let folder = table("kind", SIX);
    assert_eq!(
        classes(&folder.open_with("list.csv", &asked("")).unwrap()).len(),
        3
    );
    let folder = table("kind,size", ["a,1", "b,2", "a,3", "b,4", "a,5", "b,6"]);
    let (error, hint) = folder.refused("list.csv", &asked(""));
    assert_eq!(
        error,
        "list.csv: nothing says which column is to be predicted; there are \"file\", \"kind\", \"size\""
    );
    assert!(hint.contains("--target COLUMN"), "{hint}");
    let (error, hint) = folder.refused("list.csv", &asked("kin"));
    assert!(error.contains("\"kin\""), "{error}");
    assert!(hint.contains("kind"), "{hint}");
    let (error, _) = folder.refused("list.csv", &asked("size,colour"));
    assert!(error.contains("\"colour\""), "{error}");
}

#[test]
fn numbers_are_predicted_as_numbers() {
    let opened = table("age", ["1.5", "2", "3", "4", "5", "6.5"])
        .open_with("list.csv", &asked("age"))
        .unwrap();
    assert_eq!(flat(&opened), [1.5, 2.0, 3.0, 4.0, 5.0, 6.5]);
    assert!(classes(&opened).is_empty());
    // Whole numbers of few values are classes, unless it is said otherwise.
    let folder = table("rating", ["3", "1", "2", "3", "10", "1"]);
    let opened = folder.open_with("list.csv", &asked("rating")).unwrap();
    assert_eq!(classes(&opened), ["1", "2", "3", "10"]);
    assert_eq!(flat(&opened), [2.0, 0.0, 1.0, 2.0, 3.0, 0.0]);
    let opened = folder
        .open_with("list.csv", &tasked("rating", LabelTask::Regression))
        .unwrap();
    assert_eq!(flat(&opened), [3.0, 1.0, 2.0, 3.0, 10.0, 1.0]);
    let (error, hint) = table("age", ["1", "2", "old", "4", "5", "6"])
        .refused("list.csv", &tasked("age", LabelTask::Regression));
    assert_eq!(error, "list.csv:4: \"age\" holds \"old\", which is no number");
    assert!(hint.contains("--task multiclass"), "{hint}");
    let (error, hint) = table("age", ["2.5"; 6]).refused("list.csv", &asked("age"));
    assert_eq!(error, "list.csv: \"age\" is \"2.5\" for all images");
    assert!(hint.contains("at least two kinds"), "{hint}");
}

#[test]
fn several_columns_of_yes_and_no_are_flags() {
    let folder = table("red,round", ["1,0", "0,1", "1,1", "0,0", "1,0", "0,1"]);
    let opened = folder.open_with("list.csv", &asked("red, round")).unwrap();
    let flags = Labels::Flags {
        width: 2,
        names: vec!["red".into(), "round".into()],
    };
    assert_eq!(opened.training.labels(), Some(&flags));
    assert_eq!(targets(&opened)[2], [1.0, 1.0]);
    assert_eq!(targets(&opened)[3], [0.0, 0.0]);
    // Of other numbers each is a number, and so are these if it is said.
    let numbers = |opened: &OpenedImages| match opened.training.labels() {
        Some(Labels::Numbers { scales }) => scales.iter().map(|scale| scale.mean).collect(),
        _ => vec![],
    };
    let opened = folder
        .open_with("list.csv", &tasked("red,round", LabelTask::Regression))
        .unwrap();
    assert_eq!(numbers(&opened), [0.5, 0.5]);
    let folder = table("x,y", ["1,10", "2,20", "3,30", "4,40", "5,50", "6,60"]);
    let opened = folder.open_with("list.csv", &asked("y,x")).unwrap();
    assert_eq!(numbers(&opened), [35.0, 3.5]);
    assert_eq!(targets(&opened)[1], [20.0, 2.0]);
    let folder = table("x,y", ["1,10", "2,20", "3,?!", "4,40", "5,50", "6,60"]);
    let (error, _) = folder.refused("list.csv", &asked("x,y"));
    assert_eq!(error, "list.csv:4: \"y\" holds \"?!\", which is no number");
}

#[test]
fn several_labels_in_one_text_are_flags() {
    for between in ["|", " | ", ";"] {
        let texts = ["a|b", "b", "c|a", "a", "b|c", "c"].map(|text| text.replace('|', between));
        let folder = table("tags", texts.each_ref().map(String::as_str));
        let opened = folder.open_with("list.csv", &asked("tags")).unwrap();
        let flags = Labels::Flags {
            width: 3,
            names: ["a", "b", "c"].map(String::from).to_vec(),
        };
        assert_eq!(opened.training.labels(), Some(&flags), "{between}");
        assert_eq!(
            targets(&opened),
            [
                [1.0, 1.0, 0.0],
                [0.0, 1.0, 0.0],
                [1.0, 0.0, 1.0],
                [1.0, 0.0, 0.0],
                [0.0, 1.0, 1.0],
                [0.0, 0.0, 1.0]
            ]
        );
    }
}

#[test]
fn labels_are_held_against_those_that_are_known() {
    let opened = table("kind", SIX).open_with("list.csv", &asked("kind")).unwrap();
    let known = |labels: Option<&Labels>, target: &str| ImageOptions {
        labels: LabelOptions {
            known: labels.cloned(),
            ..LabelOptions::default()
        },
        ..asked(target)
    };
    let labels = opened.training.labels();
    let less = table("kind", ["dog", "dog", "emu", "emu", "emu", "dog"])
        .open_with("list.csv", &known(labels, "kind"))
        .unwrap();
    assert_eq!(flat(&less), [1.0, 1.0, 2.0, 2.0, 2.0, 1.0]);
    let (error, hint) =
        table("kind", ["dog", "dog", "fox", "emu", "emu", "dog"]).refused("list.csv", &known(labels, "kind"));
    assert_eq!(
        error,
        "list.csv: \"kind\" holds \"fox\", and the classes are \"cat\", \"dog\", \"emu\""
    );
    assert!(hint.contains("only classes that the training has"), "{hint}");
    let tags = table("tags", ["a|b", "b", "c|a", "a", "b|c", "c"])
        .open_with("list.csv", &asked("tags"))
        .unwrap();
    let one = table("tags", ["b"; 6])
        .open_with("list.csv", &known(tags.training.labels(), "tags"))
        .unwrap();
    assert_eq!(targets(&one)[0], [0.0, 1.0, 0.0]);
    let age = table("age", ["1.5", "2", "3", "4", "5", "6"])
        .open_with("list.csv", &asked("age"))
        .unwrap();
    let (error, _) = table("x,y", ["1,2"; 6]).refused("list.csv", &known(age.training.labels(), "x,y"));
    assert_eq!(error, "list.csv: 2 labels for each image where the model knows 1");
}

#[test]
fn what_cannot_be_classes_is_said() {
    let (error, hint) = table("kind", ["cat"; 6]).refused("list.csv", &asked("kind"));
    assert_eq!(error, "list.csv: \"kind\" is \"cat\" for all images");
    assert!(hint.contains("at least two kinds"), "{hint}");
    let (error, hint) = table("kind", SIX).refused("list.csv", &tasked("kind", LabelTask::Binary));
    assert_eq!(error, "list.csv: \"kind\" has 3 values, not two");
    assert!(hint.contains("--task multiclass"), "{hint}");
    let (error, _) = listed("list.csv", "file,kind\n,a\n,b\n").refused("list.csv", &asked("kind"));
    assert!(error.starts_with("list.csv: "), "{error}");
}

#[test]
fn numbers_cannot_be_balanced() {
    // Far apart: a class of each would be a list of a thousand million.
    let folder = table("price", ["1e9", "2.5", "3", "4", "5", "6"]);
    let balanced = ImageOptions {
        balanced: true,
        ..asked("price")
    };
    let (error, hint) = folder.refused("list.csv", &balanced);
    assert_eq!(
        error,
        "list.csv: there are no classes to be balanced: numbers are predicted"
    );
    assert!(hint.contains("--balanced"), "{hint}");
    let flags = table("tags", ["a|b", "b", "c|a", "a", "b|c", "c"]);
    let balanced = ImageOptions {
        balanced: true,
        ..asked("tags")
    };
    assert!(
        flags
            .refused("list.csv", &balanced)
            .0
            .contains("no classes to be balanced")
    );
}

#[test]
fn rows_without_a_path_or_a_label_are_counted() {
    let folder = listed(
        "list.csv",
        "file,kind\nimages/0.png,a\n,b\nimages/1.png,\nimages/2.png,b\n,\nimages/3.png,a\n",
    );
    let opened = folder.open_with("list.csv", &asked("kind")).unwrap();
    assert_eq!(
        (
            opened.training.n_samples(),
            opened.left_out.incomplete,
            opened.left_out.unlabelled
        ),
        (3, 3, 0)
    );
    assert_eq!(flat(&opened), [0.0, 1.0, 0.0]);
    assert_eq!(opened.training.file(1).unwrap(), folder.path("images/2.png"));
}

#[test]
fn images_that_are_not_there_are_bad_files() {
    let folder = listed(
        "list.csv",
        "file,kind\nimages/0.png,a\nimages/lost.png,b\nimages/1.png,b\nimages/2.png,b\nimages,a\n",
    );
    let opened = folder.open_with("list.csv", &asked("kind")).unwrap();
    let bad = &opened.survey.bad;
    assert_eq!((opened.training.n_samples(), bad.count), (3, 2));
    // In the order of the table. A folder is no image, whatever it says.
    let told = |name: &str, fault: &str| (folder.path(name), fault.to_string());
    assert_eq!(
        bad.first,
        [
            told("images/lost.png", "there is no such file"),
            told("images", "is no file")
        ]
    );
    assert_eq!(flat(&opened), [0.0, 1.0, 1.0]);
    let strict = ImageOptions {
        bad_files: BadFileRule::Fail,
        ..asked("kind")
    };
    folder.write(
        "list.csv",
        b"file,kind\nimages/0.png,a\nimages/lost.png,b\nimages/1.png,b\n",
    );
    let (error, hint) = folder.refused("list.csv", &strict);
    assert_eq!(error, "images/lost.png: there is no such file");
    assert!(hint.contains("--bad-files skip"), "{hint}");
}

#[test]
fn a_table_without_rows_or_columns_is_refused() {
    for text in ["", "file,kind\n", "\n\n\n"] {
        let folder = listed("list.csv", text);
        let error: Error = folder.open_with("list.csv", &asked("kind")).err().unwrap();
        assert!(folder.shorten(&error).starts_with("list.csv: "), "{error}");
    }
}

#[test]
fn a_path_may_be_anywhere_and_come_twice() {
    let far = Folder::new(&[("far.png", Drawing::numbered(7, 10, 10).png())]);
    let folder = listed(
        "lists/list.csv",
        &format!(
            "file,kind\n{},a\n../images/1.png,b\n../images/1.png,a\n",
            far.path("far.png").display()
        ),
    );
    let opened = folder.open_with("lists/list.csv", &asked("kind")).unwrap();
    let source = &opened.training;
    assert_eq!(shown(source, 0), Drawing::numbered(7, 10, 10).pixels);
    assert_eq!(shown(source, 1), shown(source, 2));
    assert_eq!(flat(&opened), [0.0, 1.0, 0.0]);
}
