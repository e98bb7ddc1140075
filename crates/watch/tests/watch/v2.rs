//! cgroup v2 on a copy of its files: what is written, how it is undone, and why it is not done at all.
//!
//! This process has one cgroup, whatever the files say, so these cases run one after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tidegate_memory::Host;
use tidegate_watch::{Confinement, UserManager};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A machine whose process is in `/user.slice/job.scope`.
struct Machine {
    root: TempDir,
    /// Directories of ours lose their files, as a kernel's do when they are removed.
    removing: AtomicBool,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc/self");
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("cgroup"), "0::/user.slice/job.scope\n").unwrap();
        let mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        fs::write(proc.join("mountinfo"), mount).unwrap();
        let machine = Machine {
            root,
            removing: AtomicBool::new(false),
        };
        fs::create_dir_all(machine.own()).unwrap();
        for (file, text) in [
            ("cgroup.controllers", "cpu memory pids\n"),
            ("cgroup.subtree_control", "\n"),
            ("cgroup.type", "domain\n"),
            ("memory.current", "4096\n"),
            ("memory.max", "max\n"),
        ] {
            machine.write(&machine.own().join(file), text);
            machine.write(&machine.slice().join(file), text);
        }
        machine.write(&machine.slice().join("cgroup.procs"), "");
        machine.write(
            &machine.own().join("cgroup.procs"),
            &format!("{}\n", std::process::id()),
        );
        machine
    }

    fn slice(&self) -> PathBuf {
        self.root.path().join("sys/fs/cgroup/user.slice")
    }

    fn own(&self) -> PathBuf {
        self.slice().join("job.scope")
    }

    fn leaf(&self) -> PathBuf {
        self.own()
            .join(format!("tidegate-supervisor-{}", std::process::id()))
    }

    fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
    }

    fn confine(&self) -> Confinement {
        let host = Host::recorded(self.root.path(), [("", ""); 0]);
        Confinement::create(&host, "k7mp2xqa", Some((10 << 20) + 100))
    }

    /// Runs the case with a kernel that empties directories of ours once they are being removed.
    fn run(&self, case: impl FnOnce(&Machine)) {
        let _alone = ONE_AT_A_TIME
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if self.removing.load(Ordering::SeqCst) {
                        empty(&self.slice());
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let _over = Flag(&over);
            case(self);
        });
    }
}

/// Set however the case ends: the kernel above must not outlive a failed assertion.
struct Flag<'a>(&'a AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn empty(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir {
            empty(&entry.path());
        } else if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("tidegate-"))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .trim()
        .to_string()
}

fn why(confinement: &Confinement) -> &str {
    match confinement {
        Confinement::Watched { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn alone_in_a_delegated_cgroup_we_step_aside_and_come_back() {
    Machine::new().run(|machine| {
        let confinement = machine.confine();
        let group = machine.own().join("tidegate-k7mp2xqa");
        assert_eq!(
            (confinement.describe().as_str(), confinement.cgroup()),
            ("cgroup v2", Some(group.as_path()))
        );
        assert_eq!(
            read(machine.leaf().join("cgroup.procs")),
            std::process::id().to_string()
        );
        assert_eq!(read(machine.own().join("cgroup.subtree_control")), "+memory");
        assert_eq!(
            read(group.join("memory.max")),
            (10 << 20).to_string(),
            "whole pages, rounded down"
        );
        assert_eq!(read(group.join("memory.swap.max")), "0");
        assert!(!group.join("memory.oom.group").exists());
        confinement.die_together();
        assert_eq!(read(group.join("memory.oom.group")), "1");

        machine.removing.store(true, Ordering::SeqCst);
        drop(confinement);
        assert!(!group.exists() && !machine.leaf().exists());
        assert_eq!(read(machine.own().join("cgroup.subtree_control")), "-memory");
        assert_eq!(
            read(machine.own().join("cgroup.procs")),
            std::process::id().to_string()
        );
    });
}

#[test]
fn two_jobs_of_one_process_share_the_step_aside() {
    Machine::new().run(|machine| {
        let host = Host::recorded(machine.root.path(), [("", ""); 0]);
        let first = Confinement::create(&host, "first", Some(10 << 20));
        let second = Confinement::create(&host, "second", Some(10 << 20));
        assert_eq!(
            second.cgroup(),
            Some(machine.own().join("tidegate-second").as_path())
        );
        machine.removing.store(true, Ordering::SeqCst);
        drop(first);
        assert_eq!(
            read(machine.own().join("cgroup.subtree_control")),
            "+memory",
            "the second still needs it"
        );
        assert!(machine.leaf().exists());
        drop(second);
        assert_eq!(read(machine.own().join("cgroup.subtree_control")), "-memory");
        assert!(!machine.leaf().exists());
    });
}

#[test]
fn another_supervisors_limit_is_not_lifted() {
    Machine::new().run(|machine| {
        let confinement = machine.confine();
        // Made by another process while ours was there: without the controller it would have no limit.
        fs::create_dir(machine.own().join("theirs")).unwrap();
        machine.removing.store(true, Ordering::SeqCst);
        drop(confinement);
        assert_eq!(read(machine.own().join("cgroup.subtree_control")), "+memory");
        assert!(!machine.own().join("tidegate-k7mp2xqa").exists());
    });
}

#[test]
fn in_the_root_of_all_nobody_steps_aside() {
    Machine::new().run(|machine| {
        let root = machine.root.path().join("sys/fs/cgroup");
        machine.write(&machine.root.path().join("proc/self/cgroup"), "0::/\n");
        // It has neither `cgroup.type` nor `memory.current`.
        machine.write(&root.join("cgroup.controllers"), "cpu memory pids\n");
        machine.write(&root.join("cgroup.subtree_control"), "\n");
        machine.write(&root.join("cgroup.procs"), "1\n2\n");
        let host = Host::recorded(machine.root.path(), [("", ""); 0]);
        let budget = tidegate_memory::resolve(&host, Some(tidegate_memory::Amount::Bytes(1 << 20)));
        assert_eq!(
            budget.unwrap().bounds[0].to_string(),
            "cgroup v2 /sys/fs/cgroup: unlimited"
        );
        let confinement = machine.confine();
        let group = root.join("tidegate-k7mp2xqa");
        assert_eq!(confinement.cgroup(), Some(group.as_path()));
        assert_eq!(read(root.join("cgroup.procs")), "1\n2");
        empty(&group);
        drop(confinement);
        assert!(!group.exists());
        assert_eq!(read(root.join("cgroup.subtree_control")), "-memory");
    });
}

#[test]
fn beside_other_processes_an_ancestor_that_hands_memory_down_will_do() {
    Machine::new().run(|machine| {
        machine.write(&machine.own().join("cgroup.procs"), "1\n2\n");
        machine.write(&machine.slice().join("cgroup.subtree_control"), "memory pids\n");
        let confinement = machine.confine();
        let group = machine.slice().join("tidegate-k7mp2xqa");
        assert_eq!(confinement.cgroup(), Some(group.as_path()));
        assert_eq!(
            read(machine.own().join("cgroup.subtree_control")),
            "",
            "our own is left as it is"
        );
        machine.removing.store(true, Ordering::SeqCst);
        drop(confinement);
        assert!(!group.exists());
        assert_eq!(
            read(machine.slice().join("cgroup.subtree_control")),
            "memory pids"
        );
    });
}

#[test]
fn a_limit_that_somebody_set_is_not_escaped() {
    Machine::new().run(|machine| {
        machine.write(&machine.own().join("cgroup.procs"), "1\n2\n");
        machine.write(&machine.own().join("memory.max"), "1000000\n");
        machine.write(&machine.slice().join("cgroup.subtree_control"), "memory\n");
        let confinement = machine.confine();
        assert!(
            why(&confinement).contains("holds other processes (2 in all)"),
            "{}",
            why(&confinement)
        );
        assert!(!machine.slice().join("tidegate-k7mp2xqa").exists());
    });
}

#[test]
fn without_the_memory_controller_the_worker_is_watched() {
    Machine::new().run(|machine| {
        machine.write(&machine.own().join("cgroup.controllers"), "cpu pids\n");
        assert!(why(&machine.confine()).contains("has no memory controller"));
        assert!(!machine.leaf().exists());
    });
}

#[test]
fn a_refused_controller_is_undone() {
    Machine::new().run(|machine| {
        machine.removing.store(true, Ordering::SeqCst);
        // A directory cannot be written: as good as EACCES, and root cannot overrule it.
        let control = machine.own().join("cgroup.subtree_control");
        fs::remove_file(&control).unwrap();
        fs::create_dir(&control).unwrap();
        let confinement = machine.confine();
        assert!(
            why(&confinement).contains("cgroup.subtree_control"),
            "{}",
            why(&confinement)
        );
        assert!(!machine.leaf().exists());
        assert_eq!(
            read(machine.own().join("cgroup.procs")),
            std::process::id().to_string()
        );
    });
}

#[test]
fn a_machine_without_cgroups_is_a_reason() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::recorded(root.path(), [("", ""); 0]);
    assert!(!why(&Confinement::create(&host, "k7mp2xqa", Some(1 << 20))).is_empty());
    assert!(!why(&Confinement::create(&host, "k7mp2xqa", None)).is_empty());
}

/// A `systemd-run` that says how it was called and becomes the command, as the real one does; one that does not know
/// `unknown` refuses it.
fn manager(folder: &Path, unknown: &str) -> UserManager {
    let program = folder.join("systemd-run");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *{unknown}*) exit 1;; esac\necho \"$@\" >> {}\n\
         while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n",
        folder.join("called").display()
    );
    // By another process: what somebody has open for writing cannot be run, and a fork of another test has it open.
    let written = Command::new("sh")
        .args(["-c", "printf '%s' \"$1\" > \"$0\" && chmod +x \"$0\""])
        .args([program.as_os_str(), script.as_ref()])
        .status();
    assert!(written.unwrap().success());
    UserManager { systemd_run: program }
}

#[test]
fn the_users_systemd_makes_a_scope_where_we_may_make_no_cgroup() {
    Machine::new().run(|machine| {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::recorded(machine.root.path(), [("", ""); 0]);
        let words = ["echo".into(), "a $b c".into()];
        let called = || fs::read_to_string(folder.path().join("called")).unwrap_or_default();

        machine.removing.store(true, Ordering::SeqCst);
        let manager_of_today = manager(folder.path(), "nothing");
        assert!(
            manager_of_today.own_scope(&host, &words).is_none(),
            "here we can make one ourselves"
        );
        assert_eq!(called(), "");

        machine.write(&machine.own().join("cgroup.procs"), &format!("1\n{}\n", std::process::id()));
        let mut command = manager_of_today.own_scope(&host, &words).expect("a scope");
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a $b c\n");
        let last = called().lines().last().unwrap().to_string();
        let unit = format!("--unit=tidegate-{}", std::process::id());
        assert_eq!(
            last,
            format!(
                "--user --scope --quiet --collect --expand-environment=no {unit} --property=Delegate=yes -- echo a $b c"
            )
        );
        let old = manager(folder.path(), "--expand-environment");
        assert!(old.own_scope(&host, &words).is_some(), "without the word it does not know");
        let broken = manager(folder.path(), "--scope");
        assert!(broken.own_scope(&host, &words).is_none(), "no bus, no scope");

        machine.write(
            &machine.root.path().join("proc/self/cgroup"),
            "0::/user.slice/tidegate-7.scope\n",
        );
        assert!(
            manager_of_today.own_scope(&host, &words).is_none(),
            "no scope in a scope"
        );
    });
}
