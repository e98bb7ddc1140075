//! Memory that is taken away while a training runs, by the kernel's own limits: it keeps less, or ends in good order.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::help::{Place, wait_for, wait_until};
use crate::networks::npy;
use crate::tables::Random;

const MB: u64 = 1_000_000;
/// A limit that nothing here comes near.
const WIDE: u64 = 300 * MB;
/// Looks at what is held between two steps.
const LOOKS: u32 = 10;

/// One of these tests at a time: beside each other they would be slower than the limits that they lower.
static ALONE: Mutex<()> = Mutex::new(());

/// A memory cgroup (v1) around a whole training, its supervisor included, with others in it.
struct Around(
    PathBuf,
    #[expect(dead_code, reason = "held until the test is over")] MutexGuard<'static, ()>,
);

impl Around {
    /// None where none can be made.
    fn make(name: &str, limit: u64) -> Option<Around> {
        let name = format!("tidegate-test-{name}-{}", std::process::id());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let around = Around(PathBuf::from("/sys/fs/cgroup/memory").join(name), alone);
        let made = fs::create_dir(&around.0).is_ok() && around.limit(limit);
        if !made {
            eprintln!("skipped: no memory cgroup of version 1 can be made here");
        }
        made.then_some(around)
    }

    fn limit(&self, bytes: u64) -> bool {
        fs::write(self.0.join("memory.limit_in_bytes"), bytes.to_string()).is_ok()
    }

    /// What is used and cannot be taken back.
    fn held(&self) -> u64 {
        let read = |file: &str| fs::read_to_string(self.0.join(file)).unwrap();
        let usage: u64 = read("memory.usage_in_bytes").trim().parse().unwrap();
        let stat = read("memory.stat");
        let cached = stat.lines().find_map(|line| line.strip_prefix("total_cache "));
        usage - cached.unwrap().parse::<u64>().unwrap()
    }

    /// Starts a command in it.
    fn start(&self, command: &mut Command) -> Child {
        let procs = self.0.join("cgroup.procs");
        // SAFETY: between fork and exec only a file is written; nobody else changes it.
        unsafe {
            command.pre_exec(move || fs::OpenOptions::new().write(true).open(&procs)?.write_all(b"0"));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A job whose samples take 43 MB in memory, and its network next to nothing.
fn job(place: &Place, epochs: u32) -> String {
    let job = format!(
        "memory = \"120MB\"\n[data]\npath = \"x.npy\"\n[model]\nkind = \"network\"\n\
         layers = [\"flatten\", {{ dense = \"classes\" }}]\n[train]\nepochs = {epochs}\nbatch = 256\nthreads = 1\n"
    );
    place.write("job.toml", job);
    samples(place);
    "train job.toml".into()
}

fn samples(place: &Place) {
    let (n, len) = (300_000, 144);
    let mut random = Random(3);
    let (mut pixels, mut labels) = (Vec::with_capacity(n * len), Vec::new());
    for i in 0..n {
        let class = (i * 7 + i / 5) % 3;
        labels.extend((class as i64).to_le_bytes());
        pixels.extend((0..len).map(|at| {
            let noise = (random.next() >> 40) % 90;
            noise as u8 + if at / 48 == class { 60 } else { 0 }
        }));
    }
    place.write("x.npy", npy("|u1", &[n, 12, 12], &pixels));
    place.write("y.npy", npy("<i8", &[n], &labels));
}

/// The model of a run, as bytes.
type ModelOf = fn(&Place, &str) -> Vec<u8>;

/// The model of a training that nobody disturbs.
fn undisturbed(place: &Place, train: &str, model: ModelOf) -> Vec<u8> {
    let whole = place.json(train);
    model(place, whole["run"]["id"].as_str().unwrap())
}

/// A training in a group, far enough that it has saved a checkpoint.
fn under_way(place: &Place, around: &Around, train: &str) -> Child {
    let known = place.run_ids();
    let child = around.start(&mut place.command(train));
    wait_for("the first checkpoint", Duration::from_secs(120), || {
        let ids = place.run_ids();
        let new = ids.iter().filter(|id| !known.contains(id));
        let mut states = new.map(|id| place.home.join("runs").join(id).join("checkpoint/state.json"));
        states.any(|state| state.exists())
    });
    child
}

/// Checks that a training stopped for its memory, and that it ends at the same weights once it is taken up.
fn check_stopped(place: &Place, child: Child, model: ModelOf, expected: &[u8]) -> Value {
    let answer = place.finish(child);
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("stopped because memory was taken away: "),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("a checkpoint was saved"),
        "{}",
        answer.stderr
    );
    let run = place.json("show last");
    assert_eq!(run["status"], "failed");
    assert_eq!(run["oom_kills"].as_u64().unwrap_or(0), 0, "{run}");
    let why = place.json("why last");
    let verdict = &why["verdict"];
    assert_eq!(
        (&verdict["cause"], &verdict["grade"]),
        (&"memory_taken".into(), &"proven".into()),
        "{why}"
    );
    assert_eq!(verdict["evidence"][0]["standing"], "observed", "{why}");
    let remedy = verdict["remedies"][0]["command"].as_str().unwrap();
    assert!(remedy.starts_with("tidegate resume "), "{remedy}");
    // Where there is room again, it goes on.
    let resumed = place.json("resume last --memory 110MB");
    assert!(
        model(place, resumed["run"]["id"].as_str().unwrap()) == expected,
        "another model"
    );
    why
}

/// Checks that a training went on with less, and ended at the same model.
fn check_done(place: &Place, child: Child, model: ModelOf, expected: &[u8]) {
    let answer = place.finish(child);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("memory is being taken away"),
        "{}",
        answer.stderr
    );
    let run = place.json("show last");
    assert_eq!(run["oom_kills"].as_u64().unwrap_or(0), 0, "{run}");
    assert!(
        model(place, run["id"].as_str().unwrap()) == expected,
        "another model"
    );
}

impl Around {
    /// The most that was ever used.
    fn peak(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("memory.max_usage_in_bytes")).unwrap();
        text.trim().parse().unwrap()
    }

    /// Lowers the limit step by step, as far as that or until the training ends; what is in use is never taken.
    fn lower(&self, child: &mut Child, to: u64) {
        // What nobody ever used goes at once, so that a fast training does not end before it is short of anything.
        let mut limit = WIDE.min(self.peak() + 16 * MB);
        self.limit(limit);
        // Between two epochs less is held than within one, however long one takes on a busy machine.
        let mut recent = VecDeque::new();
        while child.try_wait().unwrap().is_none() && limit > to {
            for _ in 0..LOOKS {
                recent.push_back(self.held());
                std::thread::sleep(Duration::from_millis(100) / LOOKS);
            }
            recent.drain(..recent.len().saturating_sub(10 * LOOKS as usize));
            let held = recent.iter().copied().max().unwrap();
            // Where much was let go, it takes long to come near again.
            let step = match limit.saturating_sub(held) / MB {
                64.. => 16 * MB,
                16.. => 4 * MB,
                _ => MB,
            };
            if limit > held + 2 * MB + step {
                limit -= step;
                self.limit(limit);
            }
        }
    }
}

#[test]
fn a_limit_that_is_lowered_takes_the_samples_from_memory_and_then_ends_it_in_good_order() {
    let Some(around) = Around::make("lowered", WIDE) else {
        return;
    };
    let place = Place::new();
    let train = job(&place, 60);
    let expected = undisturbed(&place, &train, Place::weights);

    let child = under_way(&place, &around, &train);
    let before = around.held();
    assert!(before > 45 * MB, "samples are held: {before}");
    // More than is used, and less than it needs to feel safe.
    assert!(around.limit(before + 2 * MB), "the limit can be lowered");
    wait_until("the samples are let go", || around.held() + 30 * MB < before);
    check_done(&place, child, Place::weights, &expected);

    // Step by step, until there is nothing left to let go.
    assert!(around.limit(WIDE));
    let mut child = under_way(&place, &around, &train);
    around.lower(&mut child, 0);
    let why = check_stopped(&place, child, Place::weights, &expected);
    let sentence = why["verdict"]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("the limit was lowered from 300 MB to "),
        "{sentence}"
    );
}

/// A training on a table goes on within so many bytes, and stops when even more is taken.
fn check_table(around: &Around, place: &Place, train: &str, model: ModelOf, within: u64) {
    let expected = undisturbed(place, train, model);
    let started = || {
        assert!(around.limit(WIDE));
        let known = place.run_ids();
        let child = around.start(&mut place.command(train));
        wait_for("it learns", Duration::from_secs(120), || {
            let ids = place.run_ids();
            let Some(id) = ids.iter().find(|id| !known.contains(id)) else {
                return false;
            };
            let checkpoint = place.home.join("runs").join(id).join("checkpoint/state.json");
            let run = place.look("show last");
            let basis = run["plan"]["times"]["basis"].as_str().unwrap_or_default();
            // Linear models have saved an epoch by then, of trees some were timed.
            run["id"] == id.as_str() && (checkpoint.exists() || basis.contains("of the training itself"))
        });
        child
    };
    let mut child = started();
    around.lower(&mut child, within);
    check_done(place, child, model, &expected);
    let mut child = started();
    around.lower(&mut child, 0);
    check_stopped(place, child, model, &expected);
}

#[test]
fn trees_let_go_of_their_rows_and_then_end_in_good_order() {
    let Some(around) = Around::make("trees", WIDE) else {
        return;
    };
    let mut random = Random(5);
    let mut text = String::from("y");
    (0..24).for_each(|i| text.push_str(&format!(",x{i}")));
    for _ in 0..500_000 {
        let digits: Vec<u64> = (0..24).map(|_| random.next() >> 60).collect();
        let sum = digits[0] + digits[1] * digits[2] / 8 + (random.next() >> 61);
        text.push_str(if sum > digits[3] + 12 { "\n1" } else { "\n0" });
        digits
            .iter()
            .for_each(|digit| text.push_str(&format!(",{digit}")));
    }
    // Rows and their state take 22 MB.
    let place = Place::with(text + "\n");
    let train = "train data.csv --target y --model boost --trees 250 --depth 4 --threads 1 --memory 110MB";
    check_table(&around, &place, train, Place::forest, 22 * MB);
}

#[test]
fn a_linear_model_lets_go_of_what_it_read_ahead_and_then_ends_in_good_order() {
    let Some(around) = Around::make("linear", WIDE) else {
        return;
    };
    let mut random = Random(6);
    let mut text = String::from("y,text\n");
    for _ in 0..60_000 {
        let words: Vec<u64> = (0..50).map(|_| random.next() >> 52).collect();
        let some = words.iter().filter(|word| **word % 5 == 0).count() as u64;
        text.push_str(if some + (random.next() >> 62) > 11 {
            "1,"
        } else {
            "0,"
        });
        words.iter().for_each(|word| text.push_str(&format!("w{word} ")));
        text.push('\n');
    }
    // Pieces and what becomes of them take 55 MB; no epoch of so wide a model is known to be the last one.
    let place = Place::with(text);
    let job = "memory = \"110MB\"\n[data]\npath = \"data.csv\"\ntarget = \"y\"\n[features]\n\
               text = { encode = \"tokens\", bits = 16, words = 3 }\n[model]\nkind = \"linear\"\n\
               [train]\nepochs = 200\nthreads = 4\npack = false\n";
    place.write("job.toml", job);
    check_table(&around, &place, "train job.toml", Place::weights, 40 * MB);
}

/// Takes 2 MB more every tenth of a second, until it is told to end or has taken so many.
const NEIGHBOUR: &str = "
import sys, time
taken = []
for i in range(int(sys.argv[1])):
    taken.append(bytearray(b'x') * 2_000_000)
    time.sleep(0.1)
print('full', flush=True)
sys.stdin.read()
";

#[test]
fn a_neighbour_that_grows_ends_it_in_good_order() {
    let Some(around) = Around::make("neighbour", 140 * MB) else {
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 to be the neighbour");
        return;
    }
    let place = Place::new();
    let train = job(&place, 100);
    let expected = undisturbed(&place, &train, Place::weights);
    let child = under_way(&place, &around, &train);
    let mut python = Command::new("python3");
    python.args(["-c", NEIGHBOUR, "70"]).stdin(Stdio::piped());
    let mut neighbour = around.start(&mut python);
    let mut child = child;
    wait_for("the training ends", Duration::from_secs(120), || {
        child.try_wait().unwrap().is_some()
    });
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    // Nobody was killed: the neighbour is still there.
    assert_eq!(neighbour.try_wait().unwrap(), None, "{said}");
    drop(neighbour.stdin.take());
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert!(said.contains("memory is being taken away"), "{said}");
    assert!(said.contains("others came to use so much"), "{said}");
    let resumed = place.json("resume last");
    assert!(
        place.weights(resumed["run"]["id"].as_str().unwrap()) == expected,
        "other weights"
    );
}
