//! Memory as the kernel counts it, file pages included: packs are written and read in a few megabytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_data::BinsPack;
use tidegate_data::pack::Part;
use tidegate_memory::Ledger;

use crate::help::{Block, Scratch, key, write_bins};

const N_FEATURES: usize = 60;
const BLOCKS: [usize; 64] = [32_768; 64];

/// Writes a pack of 136 MB and reads it twice.
fn work(folder: &Path) {
    let ledger = Ledger::new(8 << 20);
    let holder = ledger.holder("pack");
    let store = tidegate_data::PackStore::at(folder.join("packs"));
    write_bins(
        &crate::help::options(store.clone(), key(), 2_097_152),
        N_FEATURES,
        &BLOCKS,
        &holder,
    );
    let pack = BinsPack::open(&store, key(), N_FEATURES, &holder)
        .unwrap()
        .unwrap();
    let mut read = Block::empty(BLOCKS[0], N_FEATURES);
    for block in (0..pack.n_blocks()).chain(0..pack.n_blocks()) {
        read.read(&pack, block, Part::Whole).unwrap();
    }
}

/// Does nothing but where the test below starts it, in a cgroup of its own.
#[test]
fn as_a_child() {
    if let Some(folder) = std::env::var_os("TIDEGATE_TEST_PEAK_OF_A_PACK") {
        work(Path::new(&folder));
    }
}

/// A cgroup of our own, and the file that tells its peak.
struct Group(PathBuf, &'static str);

impl Group {
    fn make() -> Option<Group> {
        let name = format!("tidegate-packs-{}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/memory", "memory.max_usage_in_bytes"),
            ("/sys/fs/cgroup", "memory.peak"),
        ];
        places.into_iter().find_map(|(root, peak)| {
            let path = Path::new(root).join(&name);
            fs::create_dir(&path).ok()?;
            let group = Group(path, peak);
            group.0.join(peak).exists().then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn packs_stay_out_of_the_page_cache() {
    let Some(group) = Group::make() else {
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    // Not in memory: a file system on a disk, as packs are.
    let scratch = Scratch::numbers(2);
    let status = Command::new("sh")
        .args(["-c", "echo $$ > \"$0\" && exec \"$1\" --exact peak::as_a_child"])
        .arg(group.0.join("cgroup.procs"))
        .arg(std::env::current_exe().unwrap())
        .env("TIDEGATE_TEST_PEAK_OF_A_PACK", scratch.folder.path())
        .output()
        .unwrap();
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stdout)
    );
    let peak: u64 = fs::read_to_string(group.0.join(group.1))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    println!("peak {:.1} MB", peak as f64 / 1e6);
    // A block is 2.1 MB; one is made, one is read, two windows are on their way, and the program is there too.
    assert!(peak < 24 << 20, "{peak} bytes for a pack of 136 MB");
}
