//! Options: as job files have them, as the command line does, and what is refused.

use super::*;

#[test]
fn a_job_file_and_the_command_line_say_the_same() {
    for (line, job, words) in [
        ("flip", r#"{"horizontal_flip": true}"#, "horizontal flip"),
        (
            "horizontal-flip,Vertical_Flip=true",
            r#"{"horizontal_flip": true, "vertical_flip": true}"#,
            "horizontal flip · vertical flip",
        ),
        (
            "flip,rotation=20,zoom=0.2",
            r#"{"horizontal_flip": true, "rotation": 20, "zoom": 0.2}"#,
            "horizontal flip · rotation ±20° · zoom 0.8–1.2",
        ),
        (
            "shift=0.1 , shear = 10",
            r#"{"shift": 0.1, "shear": 10}"#,
            "shift ±0.1 · shear ±10°",
        ),
        (
            "shift=0.1:0.25,fill=reflect",
            r#"{"shift": [0.1, 0.25], "fill": "reflect"}"#,
            "shift ±0.1 × ±0.25 · fill reflect",
        ),
        ("crop=0.5", r#"{"crop": 0.5}"#, "crop 0.5–1"),
        ("crop=0.3:0.9", r#"{"crop": [0.3, 0.9]}"#, "crop 0.3–0.9"),
        (
            "brightness=0.9,contrast=0.5:2,saturation=1:1,hue=0.05",
            r#"{"brightness": 0.9, "contrast": [0.5, 2], "saturation": [1, 1], "hue": 0.05}"#,
            "brightness 0.1–1.9 · contrast 0.5–2 · hue ±0.05",
        ),
        (
            "erase=0.25,mixup=0.2,cutmix=1",
            r#"{"erase": 0.25, "mixup": 0.2, "cutmix": 1.0}"#,
            "erase 25 % · mixup 0.2 · cutmix 1",
        ),
        (
            "standard,rotation=5,flip=false",
            r#"{"rotation": 5, "shift": 0.1, "zoom": 0.1}"#,
            "rotation ±5° · shift ±0.1 · zoom 0.9–1.1",
        ),
        ("fill=wrap", r#"{"fill": "wrap"}"#, "nothing"),
        ("rotation=0,zoom=0", r#"{"rotation": 0, "zoom": 0}"#, "nothing"),
    ] {
        let augment = augment(line);
        let from_job: Augment = serde_json::from_str(job).unwrap();
        assert_eq!(augment, from_job, "{line}");
        assert_eq!(augment.describe(), words, "{line}");
        assert_eq!(augment.is_nothing(), words == "nothing", "{line}");
        let written = serde_json::to_string(&augment).unwrap();
        assert_eq!(augment, serde_json::from_str(&written).unwrap(), "{written}");
    }
    assert_eq!(serde_json::to_string(&Augment::default()).unwrap(), "{}");
    assert!(Augment::default().is_nothing());
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (line, message, hint) in [
        (
            "flip,rotaton=20",
            "there is no \"rotaton\"",
            "did you mean rotation?",
        ),
        (
            "flip,,zoom=0.1",
            "there is no \"\"",
            "there are standard, flip, horizontal_flip, vertical_flip, rotation, shift, shear, zoom, fill, crop, \
             brightness, contrast, saturation, hue, erase, mixup, cutmix",
        ),
        ("rotation", "rotation has no value", "write rotation=20"),
        ("zoom=", "zoom has no value", "write zoom=0.2 or 0.8:1.2"),
        ("shear=much", "shear = much is not a number", "write shear=10"),
        (
            "zoom=0.8-1.2",
            "zoom = 0.8-1.2 is not a number, nor two",
            "write zoom=0.2 or 0.8:1.2",
        ),
        (
            "flip=twice",
            "horizontal_flip = twice is not true or false",
            "write horizontal_flip alone",
        ),
        (
            "fill=white",
            "fill = white is not a way to fill",
            "there are nearest, reflect, wrap, constant",
        ),
        (
            "rotation=181",
            "rotation = 181 is out of range",
            "give 0 to 180 degrees",
        ),
        (
            "rotation=-1",
            "rotation = -1 is out of range",
            "give 0 to 180 degrees",
        ),
        (
            "rotation=NaN",
            "rotation = NaN is out of range",
            "give 0 to 180 degrees",
        ),
        ("shear=90", "shear = 90 is out of range", "give 0 to 89 degrees"),
        (
            "shift=0.1:1.5",
            "shift = [0.1, 1.5] is out of range",
            "give a share of the side, 0 to 1; or two, of x and of y",
        ),
        (
            "zoom=1",
            "zoom = 1 is out of range",
            "give 0 to 0.95; or the lowest and the highest factor, from 0.05 to 20",
        ),
        (
            "zoom=-0.2",
            "zoom = -0.2 is out of range",
            "give 0 to 0.95; or the lowest and the highest factor, from 0.05 to 20",
        ),
        (
            "zoom=1.2:0.8",
            "zoom = [1.2, 0.8] is the wrong way round",
            "give the lower number first",
        ),
        (
            "crop=0:1",
            "crop = [0, 1] is out of range",
            "give the smallest share of the area, from 0.01 to 1; or the smallest and the largest",
        ),
        (
            "contrast=inf",
            "contrast = inf is out of range",
            "give 0 to 1; or the lowest and the highest factor, from 0 to 5",
        ),
        (
            "hue=0.6",
            "hue = 0.6 is out of range",
            "give a share of the colour circle, 0 to 0.5",
        ),
        (
            "erase=25",
            "erase = 25 is out of range",
            "give a probability, 0 to 1",
        ),
        (
            "mixup=0",
            "mixup = 0 is out of range",
            "give 0.01 to 100; 0.2 is usual",
        ),
        (
            "cutmix=-1",
            "cutmix = -1 is out of range",
            "give 0.01 to 100; 1 is usual",
        ),
    ] {
        let fault = Augment::parse(line).unwrap_err();
        assert_eq!(fault.to_string(), format!("augment: {message}"), "{line}");
        assert_eq!(fault.hint(), hint, "{line}");
    }
}

#[test]
fn a_job_file_is_held_to_what_there_is() {
    for (job, message) in [
        (r#"{"rotate": 20}"#, "unknown field `rotate`"),
        (r#"{"zoom": "much"}"#, "expected a number, or a list of two"),
        (r#"{"shift": [1, 2, 3]}"#, "expected a number, or a list of two"),
        (r#"{"fill": "white"}"#, "unknown variant `white`"),
    ] {
        let error = serde_json::from_str::<Augment>(job).unwrap_err().to_string();
        assert!(error.contains(message), "{job}: {error}");
    }
}

#[test]
fn every_word_of_the_command_line_is_known() {
    for name in words::OPTIONS {
        let fault = Augment::parse(&format!("{name}=?")).unwrap_err();
        assert!(!matches!(fault, AugmentFault::Unknown { .. }), "{name}: {fault}");
    }
    assert_eq!(Augment::parse("standard").unwrap(), Augment::standard());
}

#[test]
fn stored_samples_are_larger_where_they_are_cropped() {
    assert_eq!(augment("crop=0.5").stored_size(150, 224), (172, 256));
    assert_eq!(augment("crop=0.5").stored_size(1, 7), (2, 8));
    assert_eq!(augment("rotation=5").stored_size(150, 224), (150, 224));
}
