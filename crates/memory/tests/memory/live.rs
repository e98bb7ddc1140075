//! This machine: the live budget, the meters of a child that holds a known amount, a real cgroup, a real kill.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tidegate_memory::{
    Cgroup, CgroupVersion, Counting, Host, Limit, give_freed_memory_back, process_memory, process_status,
    process_tree, resolve, start_time, tree_memory,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Not a test but the child of those below: holds as many MB as it is told, says so, and waits for a line.
#[test]
fn child_that_holds_memory() {
    let Ok(megabytes) = std::env::var("TIDEGATE_TEST_HOLD_MB") else {
        return;
    };
    let megabytes: usize = megabytes.parse().expect("a number");
    let mut line = String::new();
    // Only once it has been put into its cgroup.
    std::io::stdin().read_line(&mut line).expect("a parent");
    let held = vec![1u8; megabytes * 1_000_000];
    println!("\nholding {}", std::hint::black_box(&held).len());
    std::io::stdout().flush().expect("a parent");
    std::io::stdin().read_line(&mut line).expect("a parent");
}

struct Holder {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Holder {
    fn start(megabytes: u64) -> Holder {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args([
                "--exact",
                "live::child_that_holds_memory",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("TIDEGATE_TEST_HOLD_MB", megabytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Holder { child, output }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Lets it take its memory; false when it died of it.
    fn hold(&mut self) -> bool {
        writeln!(self.child.stdin.as_mut().expect("piped")).expect("the child lives");
        self.output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .any(|line| line.starts_with("holding"))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn this_machine_has_a_budget() {
    let budget = resolve(&Host::live(), None).expect("a bound");
    assert!(
        budget.bytes > 1_000_000 && budget.bytes <= budget.whole(),
        "{budget:?}"
    );
    assert!(budget.bounds.contains(&budget.bound) && !budget.bound.name.is_empty());
    assert!(budget.bounds.len() >= 5, "{budget:?}");
}

#[test]
fn a_child_is_metered() {
    let host = Host::live();
    let mut child = Holder::start(64);
    assert!(child.hold());
    let memory = process_memory(&host, child.pid()).expect("it lives");
    let about_64_mb = 64_000_000..96_000_000;
    assert!(
        about_64_mb.contains(&memory.resident.expect("VmRSS")),
        "{memory:?}"
    );
    assert!(
        about_64_mb.contains(&memory.anonymous.expect("anonymous")),
        "{memory:?}"
    );
    assert!(memory.peak_resident >= Some(64_000_000), "{memory:?}");
    assert!(
        memory
            .proportional
            .is_none_or(|bytes| about_64_mb.contains(&bytes)),
        "{memory:?}"
    );

    let own = i32::try_from(std::process::id()).expect("a pid fits");
    assert!(process_tree(&host, own).contains(&child.pid()));
    let tree = tree_memory(&host, own);
    assert!(tree.resident >= memory.resident && tree.processes.len() >= 2);
    assert!(start_time(&host, child.pid()) >= start_time(&host, own));

    let pid = child.pid();
    drop(child);
    assert_eq!(process_memory(&host, pid), None);
}

#[test]
fn freed_memory_is_given_back() {
    if !give_freed_memory_back() {
        println!("skipped: not glibc");
        return;
    }
    let host = Host::live();
    let own = i32::try_from(std::process::id()).expect("a pid fits");
    let resident = || {
        process_status(&host, own)
            .and_then(|memory| memory.resident)
            .expect("VmRSS")
    };
    let pieces: Vec<Vec<u8>> = (0..32)
        .map(|index| vec![1u8; 8_000_000 - index * 50_000])
        .collect();
    let held = resident();
    drop(std::hint::black_box(pieces));
    assert!(
        resident() + 150_000_000 < held,
        "{held} before, {} after",
        resident()
    );
}

/// A cgroup of our own with a limit, removed when dropped.
struct Limited(Cgroup);

impl Limited {
    /// `None`, with the reason printed, where this machine does not let us.
    fn new(name: &str, bytes: u64) -> Option<Limited> {
        let own = match Cgroup::of(&Host::live(), None) {
            Ok(own) => own,
            Err(error) => return skip(&error.to_string()),
        };
        let path = own
            .path
            .join(format!("tidegate-test-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            return skip(&format!("{}: {error}", path.display()));
        }
        let limited = Limited(Cgroup::at(path, own.version));
        let limits: &[&str] = match own.version {
            CgroupVersion::V1 => &["memory.limit_in_bytes"],
            CgroupVersion::V2 => &["memory.max"],
        };
        for file in limits {
            if let Err(error) = fs::write(limited.0.path.join(file), bytes.to_string()) {
                return skip(&format!("{file}: {error}"));
            }
        }
        // Swap would hide the limit. Where it is not counted there is none to switch off.
        let _ = fs::write(limited.0.path.join("memory.swap.max"), "0");
        let _ = fs::write(
            limited.0.path.join("memory.memsw.limit_in_bytes"),
            bytes.to_string(),
        );
        Some(limited)
    }

    fn add(&self, pid: i32) {
        fs::write(self.0.path.join("cgroup.procs"), pid.to_string()).expect("our own cgroup takes a child");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // The kernel may still be counting the child out.
        for _ in 0..100 {
            if fs::remove_dir(&self.0.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn skip<T>(reason: &str) -> Option<T> {
    println!("skipped: no cgroup can be made here: {reason}");
    None
}

#[test]
fn a_real_cgroup_counts_its_process() {
    let Some(limited) = Limited::new("counts", 256_000_000) else {
        return;
    };
    let cgroup = &limited.0;
    let mut child = Holder::start(64);
    limited.add(child.pid());
    assert!(child.hold());
    assert_eq!(
        Cgroup::of(&Host::live(), Some(child.pid())).expect("it is in it"),
        *cgroup
    );
    // Page by page: 256 MB is not a whole number of them.
    let Limit::Bytes(limit) = cgroup.limit() else {
        panic!("{}", cgroup.limit())
    };
    assert!((255_990_000..=256_000_000).contains(&limit), "{limit}");
    let usage = cgroup.usage().expect("usage");
    assert!((64_000_000..120_000_000).contains(&usage), "{usage}");
    assert!(cgroup.peak().expect("peak") >= usage);
    assert!(
        cgroup.stat().anonymous.expect("anonymous") >= 60_000_000,
        "{:?}",
        cgroup.stat()
    );
    assert_eq!(cgroup.events().oom_kill, Some(0));
    drop(child);
    assert!(cgroup.peak().expect("peak") >= 64_000_000);
    let path: PathBuf = cgroup.path.clone();
    drop(limited);
    assert!(!path.exists());
}

#[test]
fn a_real_kill_is_counted() {
    let Some(limited) = Limited::new("kills", 32_000_000) else {
        return;
    };
    let mut child = Holder::start(128);
    limited.add(child.pid());
    assert!(!child.hold(), "128 MB cannot fit in 32 MB");
    child.child.wait().expect("it ended");
    let events = limited.0.events();
    assert_eq!(events.oom_kill, Some(1), "{events:?}");
    // Present, but no more can be told: Linux 6.18 leaves v1's counter at zero beside a real kill.
    assert!(events.max.is_some(), "{events:?}");
    assert!(limited.0.peak().expect("peak") <= 32_000_000);
}

#[test]
fn the_counting_allocator_counts() {
    // Other tests allocate meanwhile, so only bounds can be told.
    let (live, allocations) = (ALLOCATOR.live(), ALLOCATOR.allocations());
    let mut buffer: Vec<u8> = Vec::with_capacity(200_000_000);
    assert!(ALLOCATOR.live() >= 200_000_000 && ALLOCATOR.allocations() > allocations);
    buffer.reserve_exact(300_000_000);
    assert!(ALLOCATOR.live() >= 300_000_000);
    drop(buffer);
    assert!(ALLOCATOR.live() < live + 200_000_000);
    let zeroed = vec![0u8; 250_000_000];
    assert!(ALLOCATOR.live() >= 250_000_000);
    drop(zeroed);
    assert!(ALLOCATOR.peak() >= 300_000_000);
}
