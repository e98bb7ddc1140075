//! Dates and times as they are written, and the parts that are worth having.

use proptest::prelude::*;
use tidegate_data::encode::{Time, TimeFormat, TimeOptions, TimePart, parse_time};
use tidegate_data::sketch::Times;

// Expected seconds: date -u -d '2024-02-29 12:30:45' +%s
#[test]
fn times_as_people_write_them() {
    use TimeFormat::{DayFirst, MonthFirst, YearFirst};
    let check = |format: TimeFormat, text: &str, expected: Option<f64>| {
        assert_eq!(format.parse(text.as_bytes()), expected, "{text:?}");
    };
    let day = Some(1_709_164_800.0);
    let moment = Some(1_709_209_845.0);
    for text in [
        "2024-02-29",
        " 2024/02/29 ",
        "2024.2.29",
        "2024-02-29T00:00",
        "2024-02-29 00:00:00Z",
    ] {
        check(YearFirst, text, day);
    }
    for text in [
        "2024-02-29T12:30:45",
        "2024-02-29 12:30:45",
        "2024-02-29t12:30:45z",
        "2024-02-29 12:30:45 UTC",
        "2024-02-29T14:30:45+02:00",
        "2024-02-29T14:30:45+0200",
        "2024-02-29T14:30:45 +02",
        "2024-02-28T23:00:45-13:30",
        "2024-02-29 12:30:45 PM",
    ] {
        check(YearFirst, text, moment);
    }
    check(YearFirst, "2024-02-29 12:30:45.250", Some(1_709_209_845.25));
    check(YearFirst, "1969-12-31 23:59:59,5", Some(-0.5));
    check(YearFirst, "1600-01-01", Some(-11_676_096_000.0));
    check(DayFirst, "29.02.2024", day);
    check(DayFirst, "29/2/2024 12:30:45", moment);
    check(MonthFirst, "02/29/2024", day);
    check(MonthFirst, "2/29/2024 12:00 am", day);
    check(MonthFirst, "02/29/2024 12:30:45 PM", moment);
    for text in [
        "",
        "2024",
        "2024-13-01",
        "2023-02-29",
        "2024-00-10",
        "2024-01-32",
        "24-01-31",
        "2024-01/31",
        "2024-1-1x",
        "2024-01-01 25:00",
        "2024-01-01 10",
        "2024-01-01T",
        "2024-01-01 10:61",
        "20240-01-01",
        "2024-01-01 0:00 am",
        "2024-01-01 10:00 +99:00",
        "2024-01-01 10:00 CET",
        "99999999999999999999-1-1",
    ] {
        check(YearFirst, text, None);
        check(DayFirst, text, None);
    }
}

#[test]
fn the_sample_decides_between_day_and_month() {
    let check = |sample: &[&str], expected: Option<(TimeFormat, bool)>| {
        let guess = TimeFormat::detect(sample.iter().map(|text| text.as_bytes()));
        assert_eq!(
            guess.map(|guess| (guess.format, guess.ambiguous)),
            expected,
            "{sample:?}"
        );
    };
    check(
        &["2024-01-31", "2024-02-01T10:00Z"],
        Some((TimeFormat::YearFirst, false)),
    );
    check(
        &["01/02/2024", "01/31/2024"],
        Some((TimeFormat::MonthFirst, false)),
    );
    check(&["01/02/2024", "31/01/2024"], Some((TimeFormat::DayFirst, false)));
    check(
        &["01/02/2024", "03/04/2024"],
        Some((TimeFormat::MonthFirst, true)),
    );
    check(&["01.02.2024", "03.04.2024"], Some((TimeFormat::DayFirst, true)));
    check(&["1.5", "2024-01-31"], None);
    check(&[], None);
    let mostly: Vec<&str> = std::iter::repeat_n("2024-01-31", 19).chain(["soon"]).collect();
    check(&mostly, Some((TimeFormat::YearFirst, false)));
}

fn fit(texts: &[&str], options: &TimeOptions) -> Time {
    let mut times = Times::default();
    for text in texts {
        let mut one = Times::default();
        one.push_slice(&[parse_time(text.as_bytes()).unwrap()]);
        times.merge(&one);
    }
    let time = Time::fit(options, &times, 1);
    let text = serde_json::to_string(&time).unwrap();
    assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
    time
}

#[test]
fn the_parts_that_vary_are_chosen() {
    use TimePart::{Day, Elapsed, Hour, Minute, Month, Second, Weekday, Year};
    let check = |texts: &[&str], expected: &[TimePart]| {
        let time = fit(texts, &TimeOptions::default());
        let parts: Vec<TimePart> = time.parts.iter().map(|part| part.part).collect();
        assert_eq!(parts, expected, "{texts:?}");
    };
    check(
        &["2020-01-01", "2024-06-15"],
        &[Elapsed, Year, Month, Day, Weekday],
    );
    check(&["2024-03-01", "2024-03-20"], &[Elapsed, Day, Weekday]);
    check(&["2024-03-01 10:00", "2024-03-01 22:00"], &[Elapsed, Hour]);
    check(
        &["2023-12-31 10:00:05", "2024-03-01 22:30"],
        &[Elapsed, Year, Month, Day, Weekday, Hour, Minute, Second],
    );
    check(&["2024-03-01", "2024-03-01"], &[]);
    check(&[], &[]);
}

#[test]
fn numbers_from_0_to_1_and_points_on_a_circle() {
    let options = |cyclic| TimeOptions {
        parts: Some(vec![TimePart::Elapsed, TimePart::Month, TimePart::Hour]),
        cyclic,
        flag_missing: None,
    };
    let texts = ["2024-01-01 00:00", "2024-12-31 00:00"];
    let (first, last) = (
        parse_time(b"2024-01-01").unwrap(),
        parse_time(b"2024-12-31 23:00").unwrap(),
    );
    let time = fit(&texts, &options(false));
    let mut out = [9.0; 12];
    time.encode(&[first, last, f64::NAN], &mut out, 4);
    let end = (365.0 + 23.0 / 24.0) / 365.0;
    assert_eq!(
        out,
        [0.0, 0.0, 0.0, 0.0, end as f32, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    );

    let time = fit(&texts, &options(true));
    assert_eq!(time.width().dense, 6);
    let names: Vec<String> = (0..6).map(|i| time.name("at", i)).collect();
    let expected = [
        "at~elapsed",
        "at~month sine",
        "at~month cosine",
        "at~hour sine",
        "at~hour cosine",
        "at=missing",
    ];
    assert_eq!(names, expected);
    let mut out = [9.0; 12];
    let noon_in_july = parse_time(b"2024-07-01 18:00").unwrap();
    time.encode(&[first, noon_in_july], &mut out, 6);
    let rounded = out.map(|x| (x * 1e5).round() / 1e5 + 0.0);
    assert_eq!(rounded[1..6], [0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(rounded[7..12], [0.0, -1.0, -1.0, 0.0, 0.0]);
}

proptest! {
    #[test]
    fn parts_put_together_are_the_time(seconds in -60_000_000_000i64..200_000_000_000) {
        let x = seconds as f64;
        let [year, month, day, hour, minute, second] = [
            TimePart::Year, TimePart::Month, TimePart::Day, TimePart::Hour, TimePart::Minute, TimePart::Second,
        ].map(|part| part.of(x));
        let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
        prop_assert_eq!(parse_time(text.as_bytes()), Some(x), "{}", text);
        prop_assert_eq!(TimePart::Weekday.of(x), (TimePart::Weekday.of(x - 86_400.0) + 1.0) % 7.0);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "[0-9:./TZ +-]{0,30}") {
        for format in [TimeFormat::YearFirst, TimeFormat::DayFirst, TimeFormat::MonthFirst] {
            for text in [&bytes[..], text.as_bytes()] {
                prop_assert!(format.parse(text).is_none_or(f64::is_finite));
            }
        }
    }
}
