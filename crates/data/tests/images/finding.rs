//! Folders of images: classes, parts for training and validation, what is left out, and what is refused.

use std::ops::ControlFlow;

use tidegate_data::Below;
use tidegate_data::arrays::{LabelOptions, Labels};
use tidegate_data::images::{self, ImageOptions, Resize, are_images};
use tidegate_memory::Ledger;

use crate::draw::Drawing;
use crate::help::{Folder, ROOMY, form, shown, sized, unlabelled};

fn picture(number: u64) -> Vec<u8> {
    Drawing::numbered(number, 12, 10).png()
}

fn classes(labels: Option<&Labels>) -> Vec<String> {
    let classes = labels.unwrap().classes();
    classes.into_iter().map(|label| label.text.clone()).collect()
}

/// The names of all files, in order.
fn names(folder: &Folder, source: &tidegate_data::arrays::ArraySource) -> Vec<String> {
    let name = |sample| {
        let path = source.file(sample).unwrap();
        path.strip_prefix(folder.path("")).unwrap().display().to_string()
    };
    (0..source.n_samples()).map(name).collect()
}

#[test]
fn folders_are_classes_and_what_is_in_them_belongs_to_them() {
    let folder = Folder::new(&[
        ("cats/2.PNG", picture(1)),
        ("cats/10.png", picture(2)),
        ("cats/long/way/down/x.JPeG", Drawing::quarters(9, 9).jpeg()),
        ("cats/notes.txt", b"no image".to_vec()),
        ("cats/.hidden.png", picture(3)),
        ("cats/.thumbnails/1.png", picture(4)),
        ("cats/no_ending", picture(4)),
        ("dogs/1.webp", Drawing::quarters(9, 9).webp()),
        ("dogs/2.tiff", Drawing::quarters(9, 9).tiff()),
        (".git/1.png", picture(5)),
        ("empty/readme.md", b"nothing".to_vec()),
        ("readme.md", b"about".to_vec()),
    ]);
    folder.make("nothing");
    assert!(are_images(&folder.path(""), &Below::default()));
    let opened = folder.open("").unwrap();
    let source = &opened.training;
    assert_eq!(classes(source.labels()), ["cats", "dogs"]);
    assert_eq!(
        names(&folder, source),
        [
            "cats/10.png",
            "cats/2.PNG",
            "cats/long/way/down/x.JPeG",
            "dogs/1.webp",
            "dogs/2.tiff"
        ]
    );
    let targets: Vec<f32> = (0..5).flat_map(|sample| source.target(sample).to_vec()).collect();
    assert_eq!(targets, [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(
        (
            opened.left_out.unlabelled,
            opened.left_out.incomplete,
            opened.left_out.bad.count
        ),
        (0, 0, 0)
    );
    assert_eq!(opened.survey.files, 5);
    let formats: Vec<(&str, u64)> = opened.survey.formats.into_iter().collect();
    assert_eq!(formats, [("JPEG", 1), ("PNG", 2), ("TIFF", 1), ("WebP", 1)]);
    assert!(opened.validation.is_none() && opened.test.is_none());
}

#[test]
fn images_beside_the_classes_are_counted() {
    let folder = Folder::new(&[
        ("a/1.png", picture(1)),
        ("b/1.png", picture(2)),
        ("cover.png", picture(3)),
        ("other.JPG", picture(3)),
        (".thumbnail.png", picture(3)),
    ]);
    let opened = folder.open("").unwrap();
    assert_eq!((opened.training.n_samples(), opened.left_out.unlabelled), (2, 2));
}

#[test]
fn parts_stand_beside_each_other() {
    let folder = Folder::new(&[
        ("Train/a/1.png", picture(1)),
        ("Train/b/1.png", picture(2)),
        ("Train/b/2.png", picture(3)),
        ("Train/c/1.png", picture(3)),
        ("val/c/1.png", picture(4)),
        ("val/a/1.png", picture(5)),
        ("test/b/1.png", picture(6)),
        ("other/d/1.png", picture(7)),
    ]);
    assert!(are_images(&folder.path(""), &Below::default()));
    let opened = folder.open_with("", &sized(10)).unwrap();
    assert_eq!(opened.training.n_samples(), 4);
    let (validation, test) = (opened.validation.unwrap().source, opened.test.unwrap().source);
    assert_eq!(names(&folder, &validation), ["val/a/1.png", "val/c/1.png"]);
    assert_eq!(
        (validation.target(0), validation.target(1)),
        (&[0.0][..], &[2.0][..])
    );
    assert_eq!(
        (names(&folder, &test), test.target(0)),
        (vec!["test/b/1.png".into()], &[1.0][..])
    );
    assert_eq!(validation.labels(), opened.training.labels());
    assert_eq!(validation.shape(), opened.training.shape());
    // A single part is opened by its name.
    assert_eq!(folder.open("Train").unwrap().training.n_samples(), 4);
}

#[test]
fn a_class_that_only_the_validation_has_is_refused_by_name() {
    let folder = Folder::new(&[
        ("train/a/1.png", picture(1)),
        ("train/b/1.png", picture(2)),
        ("val/a/1.png", picture(5)),
        ("val/zebra/1.png", picture(5)),
    ]);
    let (error, hint) = folder.refused("", &ImageOptions::default());
    assert!(
        error.starts_with("val/zebra") && error.contains("\"zebra\""),
        "{error}"
    );
    assert!(hint.contains("leave it out, or train with it"), "{hint}");
}

#[test]
fn what_is_left_out_of_a_part_is_told_with_it() {
    let folder = Folder::new(&[
        ("train/a/1.png", picture(1)),
        ("train/b/1.png", picture(2)),
        ("val/a/1.png", picture(3)),
        ("val/a/2.png", picture(4)),
        ("val/b/zero.png", Vec::new()),
        ("val/beside.png", picture(5)),
    ]);
    let opened = folder.open("").unwrap();
    assert_eq!((opened.left_out.bad.count, opened.left_out.unlabelled), (0, 0));
    let validation = opened.validation.unwrap();
    assert_eq!(validation.source.n_samples(), 2);
    let left_out = validation.left_out;
    assert_eq!((left_out.bad.count, left_out.unlabelled), (1, 1));
    assert_eq!(left_out.empty_classes, ["b"]);
}

#[test]
fn folders_have_no_column_to_name() {
    let folder = Folder::new(&[("a/1.png", picture(1)), ("b/1.png", picture(2))]);
    let options = ImageOptions {
        target: "label".into(),
        ..ImageOptions::default()
    };
    let (error, hint) = folder.refused("", &options);
    assert_eq!(
        error,
        ".: its folders are the classes, and there is no column \"label\""
    );
    assert!(hint.contains("leave --target out"), "{hint}");
}

#[test]
fn a_class_without_an_image_that_can_be_read() {
    let mut files = vec![
        ("a/1.png", picture(1)),
        ("a/2.png", picture(2)),
        ("b/1.png", Vec::new()),
    ];
    check(
        &files,
        "",
        ".: images of a alone can be read; b/1.png: the file is empty",
        "nothing to learn from one",
    );
    files.push(("c/1.png", picture(3)));
    let opened = Folder::new(&files).open("").unwrap();
    assert_eq!(opened.left_out.empty_classes, ["b"]);
    assert_eq!(classes(opened.training.labels()), ["a", "b", "c"]);
}

/// Opening this fails with these words and this hint.
#[track_caller]
fn check(files: &[(&str, Vec<u8>)], name: &str, expected: &str, hint: &str) {
    let folder = Folder::new(files);
    let said = folder.refused(name, &ImageOptions::default());
    assert_eq!(said.0, expected);
    assert!(said.1.contains(hint), "{}", said.1);
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    check(&[], "", ".: holds no images", "images end in .jpg");
    check(
        &[("a/notes.txt", b"x".to_vec()), ("b/.x.png", picture(1))],
        "",
        ".: holds no images",
        "look whether the folder is the right one",
    );
    check(
        &[("1.png", picture(1)), ("2.jpg", picture(2))],
        "",
        ".: holds 2 images and no folder of them: nothing says what they show",
        "put the images of each class into a folder of its own",
    );
    check(
        &[("cats/1.png", picture(1)), ("cats/deeper/1.png", picture(1))],
        "",
        ".: all labels are cats",
        "there is nothing to learn",
    );
    check(
        &[("1.png", picture(1))],
        "1.png",
        "1.png: is neither a folder of images nor a table of their paths",
        "name a folder with a folder of images for each class",
    );
    check(
        &[
            ("train/a/1.png", picture(1)),
            ("train/b/1.png", picture(1)),
            ("val/notes", vec![]),
        ],
        "",
        "val: holds no images",
        "images end in",
    );
    let (error, hint) = Folder::new(&[]).refused("nowhere", &ImageOptions::default());
    assert!(error.contains("nowhere") && !hint.is_empty(), "{error}, {hint}");
}

#[test]
fn links_count_as_what_they_lead_to_and_circles_end() {
    let folder = Folder::new(&[
        ("a/1.png", picture(1)),
        ("b/1.png", picture(2)),
        (".far/9.png", picture(3)),
    ]);
    folder.link("a/linked.png", "../.far/9.png");
    folder.link("c", ".far");
    // Each of these leads into the folder that it is in, or one above.
    for name in ["a/self", "a/again", "a/deep/up"] {
        folder.link(name, &folder.path("a").display().to_string());
    }
    folder.link("b/all", &folder.path("").display().to_string());
    let opened = folder.open("").unwrap();
    let found = names(&folder, &opened.training);
    assert_eq!(
        found.iter().filter(|name| name.starts_with("a/")).count(),
        2,
        "{found:?}"
    );
    assert!(found.contains(&"c/9.png".into()), "{found:?}");
    assert!(found.len() < 20, "{found:?}");
}

#[test]
fn sizes_and_colours_are_those_of_the_images() {
    // All of one size, and small: as they are.
    let folder = Folder::new(&[("a/1.png", picture(1)), ("b/1.png", picture(2))]);
    assert_eq!(folder.open("").unwrap().form, form(10, 12, 3, Resize::Stretch));
    // Of several sizes, or large: 128 pixels.
    folder.write("b/2.png", &Drawing::quarters(13, 10).png());
    assert_eq!(folder.open("").unwrap().form, form(128, 128, 3, Resize::Stretch));
    let large = Drawing::quarters(300, 200).png();
    let folder = Folder::new(&[("a/1.png", large.clone()), ("b/1.png", large)]);
    assert_eq!(folder.open("").unwrap().form, form(128, 128, 3, Resize::Stretch));
    // All gray: one channel. One in colour: three.
    let gray = Drawing::quarters(20, 20).gray_jpeg();
    let folder = Folder::new(&[("a/1.jpg", gray.clone()), ("b/1.jpg", gray)]);
    let opened = folder.open("").unwrap();
    assert_eq!(opened.form, form(20, 20, 1, Resize::Stretch));
    assert_eq!((opened.survey.gray, opened.survey.colour), (2, 0));
    folder.write("b/2.jpg", &Drawing::quarters(20, 20).jpeg());
    let opened = folder.open("").unwrap();
    assert_eq!(
        (opened.form.channels, opened.survey.gray, opened.survey.colour),
        (3, 2, 1)
    );
    // What was asked for is taken.
    let asked = ImageOptions {
        channels: Some(1),
        resize: Resize::Fit,
        ..sized(7)
    };
    assert_eq!(
        folder.open_with("", &asked).unwrap().form,
        form(7, 7, 1, Resize::Fit)
    );
    assert_eq!(folder.open_with("", &asked).unwrap().training.shape(), [7, 7, 1]);
}

#[test]
fn images_to_judge_by_have_the_form_and_the_classes_of_the_training() {
    let trained = Folder::new(&[
        ("a/1.png", picture(1)),
        ("b/1.png", picture(2)),
        ("c/1.png", picture(3)),
    ]);
    let opened = trained.open_with("", &sized(9)).unwrap();
    let labels = opened.training.labels().unwrap();
    let judged = Folder::new(&[("c/1.png", picture(4)), ("b/1.png", picture(5))]);
    let open_as = |folder: &Folder| {
        let options = ImageOptions {
            // What a training asks for does not matter here.
            size: Some((3, 3)),
            balanced: true,
            labels: LabelOptions::default(),
            ..ImageOptions::default()
        };
        let ledger = Ledger::new(ROOMY);
        images::open_as(
            &folder.path(""),
            opened.form,
            labels,
            &options,
            &ledger,
            &mut |_, _| ControlFlow::Continue(()),
        )
        .map(|opened| opened.unwrap().source)
    };
    let source = open_as(&judged).unwrap();
    assert_eq!(
        (source.shape(), source.target(0), source.target(1)),
        (&[9, 9, 3][..], &[1.0][..], &[2.0][..])
    );
    // One class is enough to judge by; an unknown one is not.
    assert_eq!(
        open_as(&Folder::new(&[("b/1.png", picture(1))]))
            .unwrap()
            .n_samples(),
        1
    );
    let unknown = open_as(&Folder::new(&[("b/1.png", picture(1)), ("x/1.png", picture(1))]))
        .err()
        .unwrap();
    assert!(unknown.to_string().contains("\"x\""), "{unknown}");
}

#[test]
fn images_without_labels_are_all_that_a_folder_holds_or_one() {
    let folder = Folder::new(&[
        ("9.png", picture(9)),
        ("a/1.png", picture(1)),
        ("a/b/2.png", picture(2)),
        (".x/3.png", picture(3)),
    ]);
    let wanted = form(10, 12, 3, Resize::Stretch);
    let (source, survey) = unlabelled(&folder.path(""), wanted, &ImageOptions::default()).unwrap();
    assert_eq!(names(&folder, &source), ["9.png", "a/1.png", "a/b/2.png"]);
    assert_eq!((survey.files, source.labels()), (3, None));
    assert_eq!(shown(&source, 2), Drawing::numbered(2, 12, 10).pixels);
    let (one, _) = unlabelled(&folder.path("a/1.png"), wanted, &ImageOptions::default()).unwrap();
    assert_eq!(
        (one.n_samples(), shown(&one, 0)),
        (1, Drawing::numbered(1, 12, 10).pixels)
    );
    // However large what the network sees is, and whatever else was asked for.
    let large = form(700, 600, 3, Resize::Stretch);
    let (source, _) = unlabelled(&folder.path(""), large, &ImageOptions::default()).unwrap();
    assert_eq!(shown(&source, 1).len(), 700 * 600 * 3);
    folder.make("nothing");
    let error = unlabelled(&folder.path("nothing"), wanted, &ImageOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().ends_with("holds no images"), "{error}");
}

#[test]
fn who_waits_for_the_look_may_end_it() {
    let folder = Folder::of_classes(30);
    let ledger = Ledger::new(ROOMY);
    let mut told = None;
    let opened = images::open(&folder.path(""), &sized(8), &ledger, &mut |done, total| {
        told = Some((done, total));
        ControlFlow::Break(())
    });
    assert!(opened.unwrap().is_none());
    let (done, total) = told.unwrap();
    assert!(done <= total && total == 30);
    assert_eq!(ledger.used(), 0);
}

#[test]
fn what_is_named_is_told_from_other_data() {
    let folder = Folder::new(&[
        ("images/a/1.png", picture(1)),
        ("list.csv", b"file,label\nimages/a/1.png,x\n".to_vec()),
        ("table.csv", b"a,b\n1,2\n3,4\n".to_vec()),
        ("lost.csv", b"file,label\nimages/a/2.png,x\n".to_vec()),
        (
            "lines.jsonl",
            b"{\"file\": \"images/a/1.png\", \"y\": 1}\n".to_vec(),
        ),
        ("one/1.csv", b"file,label\n2.png,x\n".to_vec()),
        ("one/2.png", picture(1)),
        ("many/1.csv", b"a,b\n1,2\n".to_vec()),
        ("many/2.png", picture(1)),
        ("classes/about.csv", b"a,b\n1,2\n".to_vec()),
        ("classes/x/1.png", picture(1)),
        ("classes/y/1.png", picture(1)),
        ("parts/about.csv", b"a,b\n1,2\n".to_vec()),
        ("parts/train/x/1.png", picture(1)),
    ]);
    for (name, expected) in [
        ("images", true),
        ("images/a", true),
        ("images/a/1.png", true),
        ("list.csv", true),
        ("lines.jsonl", true),
        ("one", true),
        ("classes", true),
        ("parts", true),
        ("table.csv", false),
        ("lost.csv", false),
        ("many", false),
        ("nowhere", false),
    ] {
        assert_eq!(
            are_images(&folder.path(name), &Below::default()),
            expected,
            "{name}"
        );
    }
}
