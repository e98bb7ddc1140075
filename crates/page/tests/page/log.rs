//! Logs: windows into them, what they may hold, searches, downloads.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};

use axum::http::{StatusCode, header};
use tidegate_runs::{Run, Status, Stream, parse_timestamp};

use crate::home::Home;

/// A log as it stands on disk: line `i` came `i` seconds after noon. The last change of the file is long ago.
fn written(home: &Home, run: &Run, lines: &[&str]) {
    let text: String = lines
        .iter()
        .enumerate()
        .map(|(i, line)| format!("2026-11-15T12:{:02}:{:02}.000Z {line}\n", i / 60 % 60, i % 60))
        .collect();
    fs::write(home.store.run_dir(&run.id).log(), text).unwrap();
}

/// A thousand lines, every hundredth of them an error.
fn long(home: &Home, run: &Run) {
    let lines: Vec<String> = (0..1000)
        .map(|i| match i % 100 {
            99 => format!("err ValueError: number {i}"),
            _ => format!("out line {i}"),
        })
        .collect();
    written(home, run, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The first and the last line that a page shows, by what they say.
fn said(page: &str) -> Vec<String> {
    let texts = page.split("<span class=\"said\">").skip(1);
    texts
        .map(|text| text.split("</span>").next().unwrap().to_string())
        .collect()
}

#[tokio::test]
async fn who_says_nothing_is_sent_to_where_it_matters() {
    let home = Home::new();
    for (status, place) in [
        (Status::Failed, "death#here"),
        (Status::Done, "end#end"),
        (Status::Stopped, "end#end"),
    ] {
        let run = home.over(status.as_str(), status);
        let answer = home.get(&format!("/runs/{}/log", run.id)).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(
            answer.header(header::LOCATION),
            format!("/runs/{}/log?at={place}", run.id)
        );
    }
}

#[tokio::test]
async fn windows_follow_each_other() {
    let home = Home::new();
    let run = home.over("long", Status::Done);
    long(&home, &run);
    let path = format!("/runs/{}/log", run.id);
    let start = home.get(&format!("{path}?at=start")).await;
    let lines = said(start.ok());
    assert_eq!(
        (lines.len(), lines[0].as_str(), lines[299].as_str()),
        (300, "line 0", "ValueError: number 299")
    );
    let mut next = home.get(&format!("/api{path}?at=start")).await.value();
    let (mut seen, mut windows) = (0, 1);
    while let Some(lines) = next["lines"].as_array().filter(|lines| !lines.is_empty()) {
        seen += lines.len();
        let end = next["end"].as_u64().unwrap();
        next = home
            .get(&format!("/api{path}?after={end}&limit=77"))
            .await
            .value();
        windows += 1;
    }
    assert_eq!((seen, windows), (1000, 12));
    let end = home.get(&format!("/api{path}?at=end&limit=10")).await.value();
    assert_eq!(end["lines"][9]["text"], "ValueError: number 999");
    assert_eq!(end["lines"][9]["stream"], "err");
    let before = home
        .get(&format!("/api{path}?before={}&limit=5", end["start"]))
        .await
        .value();
    assert_eq!(before["end"], end["start"]);
    assert_eq!(before["lines"][4]["text"], "line 989");
}

#[tokio::test]
async fn a_line_a_moment_and_an_error_are_found() {
    let home = Home::new();
    let run = home.over("long", Status::Done);
    long(&home, &run);
    let path = format!("/runs/{}/log", run.id);
    let here = async |query: &str| {
        let window = home.get(&format!("/api{path}?{query}")).await.value();
        let lines = window["lines"].as_array().unwrap().clone();
        let line = lines
            .iter()
            .find(|line| line["offset"] == window["here"])
            .cloned();
        line.map_or("nothing".into(), |line| {
            line["text"].as_str().unwrap().to_string()
        })
    };
    let time = parse_timestamp("2026-11-15T12:05:00.000Z").unwrap();
    assert_eq!(here(&format!("time={time}")).await, "line 300");
    assert_eq!(here(&format!("time={}", time + 1)).await, "line 301");
    assert_eq!(
        here(&format!("time={}", time + 10_000_000)).await,
        "ValueError: number 999"
    );
    assert_eq!(here("time=0").await, "line 0");
    assert_eq!(here("at=error").await, "ValueError: number 99");
    let offset = home.get(&format!("/api{path}?at=error")).await.value()["here"]
        .as_u64()
        .unwrap();
    assert_eq!(
        here(&format!("at=error&from={}", offset + 1)).await,
        "ValueError: number 199"
    );
    // By any byte of a line.
    for byte in [offset, offset + 1, offset + 20] {
        assert_eq!(
            here(&format!("offset={byte}")).await,
            "ValueError: number 99",
            "{byte}"
        );
    }
    assert_eq!(here("offset=18446744073709551615").await, "nothing");
    let page = home.get(&format!("{path}?offset={offset}")).await;
    page.ok();
    page.has(&[
        &format!("<li id=\"o{offset}\" class=\"err here\">"),
        &format!("href=\"?offset={offset}#o{offset}\""),
        "data-jump=\"later\"",
    ]);
}

#[tokio::test]
async fn the_moment_of_death_is_marked() {
    let home = Home::new();
    let run = home.run("dead");
    home.log(&run, [(Stream::Out, &b"one"[..]), (Stream::Err, b"last words")]);
    let outcome = tidegate_runs::Outcome {
        error: Some("killed <i>by</i> the kernel".into()),
        ..tidegate_runs::Outcome::new(Status::Failed)
    };
    std::thread::sleep(Duration::from_millis(5));
    home.store.finish(&run.id, &outcome).unwrap();
    // What comes later is behind it.
    let mut log = OpenOptions::new()
        .append(true)
        .open(home.store.run_dir(&run.id).log())
        .unwrap();
    writeln!(log, "2099-01-01T00:00:00.000Z out a late word").unwrap();
    let page = home.get(&format!("/runs/{}/log?at=death", run.id)).await;
    page.has(&[
        "The run failed here",
        "killed &lt;i&gt;by&lt;/i&gt; the kernel",
        "Moment of death",
    ]);
    let text = page.ok();
    let order =
        ["last words", "The run failed here", "a late word"].map(|text_part| text.find(text_part).unwrap());
    assert!(order.is_sorted(), "{order:?}");
    let window = home
        .get(&format!("/api/runs/{}/log?at=death", run.id))
        .await
        .value();
    assert_eq!(window["here"], window["death"]);
}

#[tokio::test]
async fn whatever_is_printed_is_harmless() {
    let home = Home::new();
    let run = home.over("hostile", Status::Done);
    let lines: [&[u8]; 7] = [
        b"<script>alert(1)</script>",
        b"<img src=x onerror=alert(1)> & \"quotes\" 'too'",
        b"\x1b[31mred <b>not bold</b>\x1b[0m plain",
        b"\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\",
        b"\0\x07\x08 and \xff\xfe invalid \xc3",
        b"50%\r100%\r",
        "\u{202e}reversed\u{2066}".as_bytes(),
    ];
    home.log(&run, lines.map(|line| (Stream::Out, line)));
    for path in [
        "log?at=start",
        "log?find=o",
        "log/lines?at=start&find=script",
        "log/hits?find=a",
    ] {
        let page = home.get(&format!("/runs/{}/{path}", run.id)).await;
        page.ok();
        page.has_not(&[
            "<script>alert",
            "<img src",
            "<b>",
            "javascript:",
            "\u{1b}",
            "\0",
            "\u{7}",
            " style=",
        ]);
    }
    let page = home.get(&format!("/runs/{}/log?at=start", run.id)).await;
    page.has(&[
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<span class=\"f1\">red &lt;b&gt;not bold&lt;/b&gt;</span> plain",
        ">link</span>",
        "␀␇␈ and \u{fffd}\u{fffd} invalid \u{fffd}",
        "50%␍100%",
    ]);
    // In the API as it was, but for what is no text.
    let window = home
        .get(&format!("/api/runs/{}/log?at=start", run.id))
        .await
        .value();
    assert_eq!(
        window["lines"][2]["text"],
        "\u{1b}[31mred <b>not bold</b>\u{1b}[0m plain"
    );
}

#[tokio::test]
async fn what_is_looked_for_is_listed_and_marked() {
    let home = Home::new();
    let run = home.over("search", Status::Done);
    written(
        &home,
        &run,
        &[
            "out nothing",
            "out Loss is \u{1b}[1m0.5\u{1b}[0m, LOSS again",
            "err a <loss>",
            "out the end",
        ],
    );
    let path = format!("/runs/{}/log", run.id);
    let page = home.get(&format!("{path}?find=loss")).await;
    page.ok();
    page.has(&[
        "2 lines",
        "<mark>Loss</mark> is <span class=\"bold\">0.5</span>, <mark>LOSS</mark> again",
        "a &lt;<mark>loss</mark>&gt;",
        "class=\"hit here\"",
        "value=\"loss\"",
    ]);
    let found = home
        .get(&format!("/api{path}/search?find=loss&limit=1"))
        .await
        .value();
    assert_eq!(found["lines"].as_array().unwrap().len(), 1);
    let next = found["next"].as_u64().unwrap();
    let found = home
        .get(&format!("/api{path}/search?find=loss&from={next}"))
        .await
        .value();
    assert_eq!(
        (&found["lines"][0]["text"], &found["next"]),
        (&"a <loss>".into(), &serde_json::Value::Null)
    );
    let errors = home.get(&format!("/api{path}/search?errors=1")).await.value();
    assert_eq!(errors["lines"].as_array().unwrap().len(), 0);
    let page = home.get(&format!("{path}?at=error")).await;
    page.has(&["Nothing looks like an error"]);
    let nothing = home.get(&format!("/api{path}/search")).await;
    assert_eq!(nothing.status, StatusCode::BAD_REQUEST);
    nothing.has(&["\"hint\""]);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_a_hint() {
    let home = Home::new();
    let run = home.over("x", Status::Done);
    long(&home, &run);
    for (path, status) in [
        (format!("/runs/{}/log?at=middle", run.id), StatusCode::BAD_REQUEST),
        (format!("/runs/{}/log?offset=-1", run.id), StatusCode::BAD_REQUEST),
        (format!("/runs/{}/log?time=soon", run.id), StatusCode::BAD_REQUEST),
        (
            format!("/api/runs/{}/log?limit=x", run.id),
            StatusCode::BAD_REQUEST,
        ),
        ("/runs/nobody/log".into(), StatusCode::NOT_FOUND),
        ("/runs/nobody/log.txt".into(), StatusCode::NOT_FOUND),
        ("/api/runs/nobody/log".into(), StatusCode::NOT_FOUND),
        ("/api/runs/..%2F..%2Fetc/log".into(), StatusCode::NOT_FOUND),
        (
            "/runs/..%2f..%2f..%2fetc%2fpasswd%00/log.txt".into(),
            StatusCode::NOT_FOUND,
        ),
    ] {
        let answer = home.get(&path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains("hint"), "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_run_that_printed_nothing_has_a_page_that_says_so() {
    let home = Home::new();
    for status in [Status::Done, Status::Failed] {
        let run = home.over(status.as_str(), status);
        for place in [
            "at=start", "at=end", "at=death", "at=error", "time=5", "find=x", "offset=7",
        ] {
            let page = home.get(&format!("/runs/{}/log?{place}", run.id)).await;
            page.ok();
            page.has(&["Nothing was printed"]);
        }
        assert_eq!(
            home.get(&format!("/runs/{}/log.txt", run.id)).await.status,
            StatusCode::NOT_FOUND
        );
        fs::write(home.store.run_dir(&run.id).log(), "").unwrap();
        home.get(&format!("/runs/{}/log?at=end", run.id))
            .await
            .has(&["Nothing was printed"]);
    }
}

#[tokio::test]
async fn the_whole_of_it_is_downloaded_as_a_file() {
    let home = Home::new();
    let run = home.over("long", Status::Done);
    let text = b"2026-11-15T12:00:00.000Z out <b>\xff\n".repeat(20_000);
    fs::write(home.store.run_dir(&run.id).log(), &text).unwrap();
    let answer = home.get(&format!("/runs/{}/log.txt", run.id)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header(header::CONTENT_TYPE), "text/plain; charset=utf-8");
    assert_eq!(answer.header(header::CONTENT_LENGTH), text.len().to_string());
    assert_eq!(
        answer.header(header::CONTENT_DISPOSITION),
        format!("attachment; filename=\"tidegate-{}.txt\"", run.id)
    );
    assert_eq!(answer.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert!(answer.body == text);
}

#[tokio::test]
async fn a_log_of_gigabytes_opens_at_once_and_a_page_of_it_is_small() {
    let home = Home::new();
    let run = home.over("huge", Status::Failed);
    let path = home.store.run_dir(&run.id).log();
    // Lines, then three gigabytes of nothing, which take no room on disk, then lines.
    let mut file = File::create(&path).unwrap();
    for i in 0..2000 {
        writeln!(
            file,
            "2026-11-15T12:00:00.000Z out {i} \u{1b}[38;5;208m{}\u{1b}[0m",
            "<".repeat(1000)
        )
        .unwrap();
    }
    file.set_len(3 << 30).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    for i in 0..2000 {
        writeln!(file, "2026-11-15T13:00:00.000Z out behind {i}").unwrap();
    }
    drop(file);
    for place in [
        "at=start",
        "at=end",
        "at=death",
        "offset=2000000000",
        "time=1800000000000",
        "after=3000000",
    ] {
        let begun = Instant::now();
        let page = home.get(&format!("/runs/{}/log?{place}", run.id)).await;
        let took = begun.elapsed();
        page.ok();
        assert!(page.body.len() < 1_000_000, "{place}: {} bytes", page.body.len());
        assert!(took < Duration::from_millis(500), "{place}: {took:?}");
    }
    home.get(&format!("/runs/{}/log?at=end", run.id))
        .await
        .has(&["behind 1999"]);
    // A search is over in pieces, each of which says where the next one begins.
    let (mut from, mut pieces) = (0, 0);
    let found = loop {
        let page = home
            .get(&format!(
                "/api/runs/{}/log/search?find=behind+1234&from={from}",
                run.id
            ))
            .await
            .value();
        pieces += 1;
        if let Some(line) = page["lines"].get(0) {
            break line["text"].clone();
        }
        from = page["next"].as_u64().unwrap();
    };
    assert_eq!(found, "behind 1234");
    assert!(pieces > 10, "{pieces}");
}
