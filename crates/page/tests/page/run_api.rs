//! A run as JSON: shapes that stay, limits that hold.

use std::time::Instant;

use serde_json::{Value, json};
use tidegate_runs::{FlightHeader, FlightRecord, FlightWriter, Outcome, Run, Status, read_flight};

use crate::run::{START_MS, learn, put, record};
use crate::site::Home;

#[tokio::test]
async fn a_run_is_told_with_its_parts_and_files() {
    let home = Home::new();
    let run = home.over("whole", Status::Done);
    home.store.planned(&run.id, &[("rows".into(), 5)]).unwrap();
    put(&home, &run, "plan.json", r#"{"needs": 5}"#);
    put(&home, &run, "model/report.json", r#"{"epochs": 3}"#);
    let told = home.get(&format!("/api/runs/{}", run.id)).await.is(200).json();
    assert_eq!(told["run"]["id"], json!(run.id));
    assert_eq!(told["run"]["status"], "done");
    assert_eq!(told["plan"]["needs"], 5);
    assert_eq!(told["report"]["epochs"], 3);
    assert_eq!(
        told["parts"],
        json!([{"name": "rows", "planned_bytes": 5, "held_bytes": null}])
    );
    assert_eq!(told["files"], json!(["model", "plan.json"]));
    assert!(
        (told["plan_error"].as_f64().unwrap() + 1.0 / 9.0).abs() < 1e-9,
        "{told}"
    );
}

/// The columns of a graph, after a look at their lengths.
fn columns(graph: &Value) -> Vec<(String, String, usize)> {
    let n = graph["time_ms"].as_array().unwrap().len();
    let one = |series: &Value| {
        assert_eq!(
            series["values"].as_array().unwrap().len(),
            n,
            "{}",
            series["name"]
        );
        let text = |name: &str| series[name].as_str().unwrap().to_string();
        (text("name"), text("role"), n)
    };
    graph["series"].as_array().unwrap().iter().map(one).collect()
}

fn values(graph: &Value, name: &str) -> Vec<Option<u64>> {
    let series = graph["series"].as_array().unwrap();
    let found = series.iter().find(|series| series["name"] == name).unwrap();
    let values = found["values"].as_array().unwrap();
    values.iter().map(Value::as_u64).collect()
}

/// A recording of these looks: when, what is in use, and what of it is anonymous where that was looked at.
fn looks(home: &Home, run: &Run, looks: &[(u64, u64, Option<u64>)]) {
    let header = FlightHeader {
        run_id: run.id.clone(),
        start_ms: START_MS,
    };
    let path = home.store.run_dir(&run.id).flight();
    let mut flight = FlightWriter::create(&path, &header).unwrap();
    for (time_ms, used, anonymous) in looks {
        let record = FlightRecord {
            time_ms: *time_ms,
            resident: Some(*used),
            cgroup_usage: Some(*used),
            cgroup_anonymous: *anonymous,
            processes: 1,
            ..FlightRecord::default()
        };
        flight.append(&record).unwrap();
    }
}

#[tokio::test]
async fn what_nobody_looked_at_is_not_made_up() {
    let home = Home::new();
    let check = async |name: &str, recorded: &[(u64, u64, Option<u64>)], expected: &[Option<u64>]| {
        let run = home.over(name, Status::Stopped);
        looks(&home, &run, recorded);
        let graph = home.get(&format!("/api/runs/{}/memory", run.id)).await;
        let graph = graph.is(200).json();
        assert_eq!(values(&graph, "anonymous"), expected, "{name}");
        home.get(&format!("/runs/{}", run.id)).await.is(200);
    };
    // Near its line it was not looked at closely, for fear of the kernel: only at the start, and at the end.
    check(
        "far",
        &[
            (0, 40, Some(30)),
            (100, 40, None),
            (9_000, 40, None),
            (9_100, 40, Some(20)),
        ],
        &[Some(30), None, None, Some(20)],
    )
    .await;
    // It came and went between two looks.
    check(
        "uneven",
        &[
            (0, 40, Some(30)),
            (400, 9_000, None),
            (900, 40, None),
            (1_000, 40, Some(20)),
        ],
        &[Some(30), None, None, Some(20)],
    )
    .await;
    check(
        "even",
        &[
            (0, 40, Some(30)),
            (500, 60, None),
            (1_000, 80, Some(50)),
            (1_100, 80, None),
        ],
        &[Some(30), Some(40), Some(50), None],
    )
    .await;
    // Where every look takes long, that is how far they are apart; one that is missing leaves a gap.
    let slow = [
        (0, 40, Some(30)),
        (2_500, 40, None),
        (5_000, 40, Some(30)),
        (7_500, 40, None),
        (10_000, 40, Some(30)),
        (15_000, 40, None),
        (20_100, 40, Some(30)),
    ];
    let known = Some(30);
    check("slow", &slow, &[known, known, known, known, known, None, known]).await;
}

#[tokio::test]
async fn the_curve_of_a_dead_run_ends_where_it_lived() {
    let home = Home::new();
    let run = home.run("killed");
    looks(
        &home,
        &run,
        &[
            (0, 1_000_000, Some(900_000)),
            (500, 60_000_000, None),
            (900, 92_700_000, None),
        ],
    );
    // The processes are gone, and next to nothing is left in their cgroup.
    let header = FlightHeader {
        run_id: run.id.clone(),
        start_ms: START_MS,
    };
    let path = home.store.run_dir(&run.id).flight();
    let mut flight = read_flight(&path).unwrap().records;
    flight.push(FlightRecord {
        time_ms: 950,
        cgroup_usage: Some(370_000),
        cgroup_peak: Some(100_000_000),
        cgroup_anonymous: Some(0),
        ..FlightRecord::default()
    });
    std::fs::remove_file(&path).unwrap();
    let mut writer = FlightWriter::create(&path, &header).unwrap();
    flight.iter().for_each(|record| writer.append(record).unwrap());
    // While it may go on, all is told.
    let graph = home.get(&format!("/api/runs/{}/memory", run.id)).await;
    let graph = graph.is(200).json();
    assert_eq!((&graph["last_ms"], &graph["samples"]), (&json!(950), &json!(4)));
    assert_eq!(graph["peak_bytes"], Value::Null);
    let outcome = Outcome {
        peak_bytes: Some(100_000_000),
        peak_source: Some("cgroup peak".into()),
        ..Outcome::new(Status::Failed)
    };
    home.store.finish(&run.id, &outcome).unwrap();
    let told = async |query: &str| {
        let graph = home.get(&format!("/api/runs/{}/memory{query}", run.id)).await;
        graph.is(200).json()
    };
    let graph = told("").await;
    assert_eq!(graph["time_ms"], json!([0, 500, 900]));
    assert_eq!(values(&graph, "in use").last(), Some(&Some(92_700_000)));
    assert_eq!(values(&graph, "anonymous"), [Some(900_000), None, None]);
    assert_eq!(
        graph["marks"],
        json!([{"time_ms": 900, "kind": "death", "text": "it ended here"}])
    );
    assert_eq!((&graph["last_ms"], &graph["samples"]), (&json!(900), &json!(3)));
    assert_eq!(graph["peak_bytes"], 100_000_000);
    // A part of it knows of the end, too.
    assert_eq!(told("?from=0&to=500").await["last_ms"], 900);
    assert_eq!(told("?from=920&to=950").await["time_ms"], json!([]));
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    for part in [
        "Memory over 0.9 s: 100 MB of 105 MB at the most",
        "<output>up to 100 MB</output>",
        "3 samples, up to 92.7 MB; 100 MB was counted between them.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn memory_is_told_in_columns() {
    let home = Home::new();
    let run = home.over("recorded", Status::Failed);
    record(&home, &run, 100);
    let path = format!("/api/runs/{}", run.id);
    let graph = home.get(&format!("{path}/memory")).await.is(200).json();
    let roles: Vec<(String, String)> = columns(&graph)
        .into_iter()
        .map(|(name, role, _)| (name, role))
        .collect();
    let expected = [
        ("in use", "total"),
        ("anonymous", "part"),
        ("files", "part"),
        ("the line", "limit"),
        ("resident", "beside"),
        ("ledger", "beside"),
    ];
    assert_eq!(
        roles,
        expected.map(|(name, role)| (name.to_string(), role.to_string()))
    );
    assert_eq!(graph["start_ms"], START_MS);
    assert_eq!(
        (&graph["first_ms"], &graph["last_ms"], &graph["samples"]),
        (&json!(0), &json!(9_900), &json!(100))
    );
    // What is looked at once a second is on a line between two looks, and unknown after the last.
    let anonymous = values(&graph, "anonymous");
    assert_eq!(anonymous[25], Some(13_000_000));
    assert!(anonymous[..=90].iter().all(Option::is_some), "{anonymous:?}");
    assert!(anonymous[91..].iter().all(Option::is_none), "{anonymous:?}");
    let kinds: Vec<&str> = graph["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["epoch", "epoch", "death"]);
    let part = home
        .get(&format!("{path}/memory?from=2000&to=3000"))
        .await
        .is(200)
        .json();
    let times = part["time_ms"].as_array().unwrap();
    assert!(
        times
            .iter()
            .all(|ms| (1_900..=3_100).contains(&ms.as_u64().unwrap())),
        "{part}"
    );
    assert_eq!(part["last_ms"], 9_900);
    let few = home.get(&format!("{path}/memory?points=10")).await.is(200).json();
    assert!(few["time_ms"].as_array().unwrap().len() <= 24, "{few}");
    let processes = home.get(&format!("{path}/processes")).await.is(200).json();
    let names: Vec<String> = columns(&processes).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["python3 77", "worker <1> 78", "the line"]);
    let holders = home.get(&format!("{path}/holders")).await.is(200).json();
    assert_eq!(holders["series"], json!([]));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_word() {
    let home = Home::new();
    let run = home.over("asked", Status::Done);
    let path = format!("/api/runs/{}", run.id);
    for (query, what) in [
        ("memory?from=x", "from is"),
        ("memory?to=-1", "to is"),
        ("memory?from=9&to=3", "is no time"),
        ("memory?points=many", "points is"),
        ("metrics?points=1e9", "points is"),
        ("processes?from=99999999999999999999999", "from is"),
    ] {
        home.get(&format!("{path}/{query}")).await.is(400).explains(what);
    }
    for part in ["job", "encoding", "environment"] {
        home.get(&format!("{path}/{part}"))
            .await
            .is(404)
            .explains("this run has no");
    }
    let graph = home
        .get(&format!("{path}/memory?points=999999999"))
        .await
        .is(200)
        .json();
    assert_eq!(graph["time_ms"], json!([]));
    let running = home.running("live");
    home.get(&format!("/api/runs/{}/why", running.id))
        .await
        .is(400)
        .explains("not over");
}

#[tokio::test]
async fn figures_and_files_are_told() {
    let home = Home::new();
    let run = home.over("told", Status::Done);
    learn(&home, &run, 3);
    let path = format!("/api/runs/{}", run.id);
    let told = home.get(&format!("{path}/metrics")).await.is(200).json();
    assert_eq!(told["curves"][0]["name"], "training_loss");
    assert_eq!(
        told["curves"][0]["points"][0],
        json!({"epoch": 1, "step": 0, "value": 1.0})
    );
    put(&home, &run, "job.toml", "seed = '<b>'");
    put(&home, &run, "encoding.json", r#"{"shape": "3 columns"}"#);
    put(&home, &run, "environment.json", r#"{"kernel": "6.1"}"#);
    let job = home.get(&format!("{path}/job")).await.is(200);
    assert_eq!(job.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(
        job.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    assert_eq!(job.text(), "seed = '<b>'");
    assert_eq!(
        home.get(&format!("{path}/encoding")).await.json()["shape"],
        "3 columns"
    );
    assert_eq!(
        home.get(&format!("{path}/environment")).await.json()["kernel"],
        "6.1"
    );
}

/// The bar: a page below 200 ms and 1 MB, with a million samples. A machine that is busy is given some more time.
#[tokio::test]
async fn a_million_samples_are_no_burden() {
    let home = Home::new();
    let run = home.over("long", Status::Done);
    record(&home, &run, 1_000_000);
    learn(&home, &run, 2_000);
    for path in [
        format!("/runs/{}", run.id),
        format!("/runs/{}?memory=processes", run.id),
        format!("/api/runs/{}/memory", run.id),
        format!("/api/runs/{}/memory?from=5000000&to=6000000", run.id),
        format!(
            "/compare?run={0}&run={1}",
            run.id,
            home.over("b", Status::Done).id
        ),
    ] {
        home.get(&path).await.is(200);
        let (started, mut took) = (Instant::now(), Vec::new());
        for _ in 0..3 {
            let before = started.elapsed();
            let answer = home.get(&path).await.is(200);
            assert!(answer.body.len() < 1 << 20, "{path}: {} bytes", answer.body.len());
            took.push(started.elapsed() - before);
        }
        let best = took.iter().min().unwrap();
        assert!(best.as_millis() < 400, "{path}: {took:?}");
    }
}
