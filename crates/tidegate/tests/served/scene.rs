//! What the page is looked at with: a home with runs that the real program made, each for one thing that a page can show,
//! and a server over it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Of a column, a category and a log line: what would be a script if a page took it for one.
pub(crate) const HOSTILE: &str = "<img src=x onerror=document.title='taken'>";

pub(crate) struct Scene {
    folder: TempDir,
    server: Child,
    pub(crate) address: SocketAddr,
    /// Runs by what they show.
    pub(crate) runs: Value,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        // On a disk, as homes are: what is written to a tmpfs counts as memory.
        let folder = tempfile::Builder::new()
            .prefix("page-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::create_dir(path.join("work")).unwrap();
        data(&path.join("work"));
        let (server, address) = serve(&path);
        let mut scene = Scene {
            folder,
            server,
            address,
            runs: json!({}),
        };
        scene.train(
            "trees",
            "flights.csv --target late --model boost --trees 12 --seed 3",
        );
        scene.train(
            "line",
            "flights.csv --target late --model linear --epochs 3 --seed 5",
        );
        scene.train("numbers", "flights.csv --target minutes --model boost --trees 8");
        scene.train("shapes", "shapes --model cnn --epochs 2 --memory 200MB");
        scene.watch("dead", &leaks());
        scene.watch("wrong", &["sh", "-c", FAILS]);
        scene
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn id(&self, name: &str) -> &str {
        self.runs[name]
            .as_str()
            .unwrap_or_else(|| panic!("no run shows {name}"))
    }

    fn train(&mut self, name: &str, words: &str) {
        let words = format!("train {words} --name {name}");
        self.run(name, &words.split(' ').collect::<Vec<_>>(), "done");
    }

    /// A command that does not come to a good end.
    fn watch(&mut self, name: &str, command: &[&str]) {
        let words = [&["run", "--name", name, "--memory", "64MB", "--"], command].concat();
        self.run(name, &words, "failed");
    }

    fn run(&mut self, name: &str, words: &[&str], expected: &str) {
        let output = program(self.folder.path()).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let shown = program(self.folder.path())
            .args(["show", name, "--json"])
            .output()
            .unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        assert_eq!(shown["status"], expected, "{words:?}: {said}");
        self.runs[name] = shown["id"].clone();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Ended or not, it is waited for.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The program in the folder of the scene, on its home, on its own.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command
        .current_dir(folder.join("work"))
        .env("TIDEGATE_HOME", folder.join("home"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn serve(folder: &Path) -> (Child, SocketAddr) {
    let mut server = program(folder)
        .args(["ui", "--port", "0"])
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut words = lines.map_while(Result::ok).map(|line| line.trim().to_string());
    let url = words
        .find(|line| line.starts_with("http://"))
        .expect("an address");
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .parse()
        .unwrap();
    (server, address)
}

/// Keeps every answer, and tells how far it is.
const LEAKS: &str = r#"from functools import lru_cache


@lru_cache(maxsize=None)
def features(row):
    return [pow(row + step, 10**9, 1_000_003) / 1_000_003 for step in range(1_000)]


for row in range(10**9):
    values = features(row)
    if row % 20 == 0:
        print(f"row {row}: \x1b[33mbest\x1b[0m {max(values):.4f}", flush=True)
"#;

/// Where there is no Python, a program that keeps all it reads.
fn leaks() -> Vec<&'static str> {
    match Command::new("python3").arg("--version").output() {
        Ok(_) => vec!["python3", "features.py"],
        Err(_) => vec!["tail", "/dev/zero"],
    }
}

/// Some lines in colours, an error among them, and more after it.
const FAILS: &str = r#"
i=0
while [ $i -lt 400 ]; do
    printf '\033[32mstep %d\033[0m of 400, \033[1;33mloss\033[0m 0.%03d\n' $i $((999 - i))
    i=$((i + 1))
done
echo "<img src=x onerror=document.title='taken'>"
echo 'ValueError: the batch of step 399 holds no numbers' >&2
i=0
while [ $i -lt 300 ]; do echo "cleaning up $i"; i=$((i + 1)); done
exit 3
"#;

/// SplitMix64, below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }
}

/// A table of mixed columns, one that is trained on for as long as one likes, and pictures.
fn data(folder: &Path) {
    let mut random = Random(7);
    let mut flights = format!("carrier,tail,{HOSTILE},hour,miles,minutes,late\n");
    for row in 0..4_000 {
        let carrier = ["AA", "UA", "DL", HOSTILE][random.below(4) as usize];
        let (hour, miles) = (5 + random.below(19), 100 + random.below(2_400));
        let delay = hour * 3 + random.below(40) + if carrier == "UA" { 25 } else { 0 };
        let tail = random.below(900);
        let odd = ["calm", "windy", ""][random.below(3) as usize];
        let late = if delay > 70 { "yes" } else { "no" };
        flights += &format!(
            "{carrier},N{tail},{odd},{hour},{miles},{delay}.{},{late}\n",
            row % 10
        );
    }
    fs::write(folder.join("flights.csv"), flights).unwrap();

    // Wider than what is fitted by its full curvature: trained for as many epochs as asked.
    let names: Vec<String> = (0..300).map(|i| format!("x{i}")).collect();
    let mut wide = format!("{},y\n", names.join(","));
    for _ in 0..3_000 {
        let mut sum = 0;
        for column in 0..300 {
            let value = random.below(200) as i64 - 100;
            sum += value * (column % 3 - 1);
            wide += &format!("{value},");
        }
        wide += if sum > 0 { "1\n" } else { "0\n" };
    }
    fs::write(folder.join("wide.csv"), wide).unwrap();
    fs::write(folder.join("features.py"), LEAKS).unwrap();

    for kind in ["lying", "standing", "none"] {
        let pictures = folder.join("shapes").join(kind);
        fs::create_dir_all(&pictures).unwrap();
        for n in 0..30 {
            picture(&pictures.join(format!("{n}.png")), kind, &mut random);
        }
    }
}

/// 24 by 20 pixels: bars that lie, stand or are not there.
fn picture(path: &Path, kind: &str, random: &mut Random) {
    let (width, height) = (24, 20);
    let colour: [u64; 3] = std::array::from_fn(|_| 90 + random.below(120));
    let phase = random.below(6);
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let bar = match kind {
                "lying" => (u64::from(y) + phase) % 6 < 3,
                "standing" => (u64::from(x) + phase) % 6 < 3,
                _ => false,
            };
            let noise = random.below(40);
            let shade = if bar { 60 } else { 0 };
            pixels.extend(colour.map(|value| (value + noise - shade).min(255) as u8));
        }
    }
    let file = fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
}
