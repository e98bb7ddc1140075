//! Events in the kernel's log that end programs: kills for memory, faults, and errors of the machine.

use serde::{Deserialize, Serialize};

use super::lines::cut;
use super::machine::machine_event;
use super::size::{Unit, size_at};
use super::wording::pid_at;
use crate::why::{Cause, KernelLog};

/// Something that the kernel, or a watcher in the journal, says it saw or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelEvent {
    pub kind: KernelKind,
    pub pid: Option<i32>,
    /// The name of the process, at most 15 bytes of it.
    pub name: Option<String>,
    /// Where the line has the time since the machine started.
    pub since_boot_ms: Option<u64>,
    /// The place of its line in [`KernelLog::lines`]; of a kill the line that names the victim.
    pub line: usize,
    /// That line without what the log puts before it.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelKind {
    /// The kernel killed it for want of memory.
    OomKill(OomKill),
    /// systemd-oomd, earlyoom or systemd itself says so.
    OomDaemon {
        /// The group of processes, where it is named.
        group: Option<String>,
    },
    Segfault {
        /// The library or program in whose code it happened.
        module: Option<String>,
        /// The address is just below the stack pointer: the stack was full.
        stack: bool,
    },
    GeneralProtection {
        module: Option<String>,
    },
    InvalidOpcode {
        module: Option<String>,
    },
    /// Errors of the machine's memory.
    MemoryErrors {
        corrected: bool,
        count: u64,
    },
    MachineCheck,
    /// The processor was slowed down for heat.
    Throttled,
    /// An error of an NVIDIA accelerator by its number, or of another one.
    Device {
        xid: Option<u32>,
        /// It is the device or its link, not the program on it.
        hardware: bool,
    },
    DiskError {
        device: Option<String>,
    },
    /// A process did not get on for minutes.
    Hung,
}

/// A kill for want of memory. Sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomKill {
    pub constraint: Constraint,
    /// The group whose limit was reached, and the one that the victim was in.
    pub oom_memcg: Option<String>,
    pub task_memcg: Option<String>,
    /// The limit of that group.
    pub limit: Option<u64>,
    pub total_vm: Option<u64>,
    pub anon_rss: Option<u64>,
    pub file_rss: Option<u64>,
    pub shmem_rss: Option<u64>,
    pub oom_score_adj: Option<i32>,
}

/// What was short of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The machine.
    Host,
    /// A cgroup, at its limit.
    Cgroup,
    /// The nodes of memory that a cpuset allows.
    Cpuset,
    /// The nodes that a memory policy allows.
    MemoryPolicy,
    /// The log does not say.
    #[default]
    Unknown,
}

impl KernelEvent {
    pub fn cause(&self) -> Cause {
        match &self.kind {
            KernelKind::OomKill(kill) => match kill.constraint {
                Constraint::Cgroup => Cause::CgroupOom,
                // A kill whose line is cut is of the machine more often than not.
                _ => Cause::HostOom,
            },
            KernelKind::OomDaemon { .. } => Cause::OomDaemon,
            KernelKind::Segfault { stack: true, .. } => Cause::StackOverflow,
            KernelKind::Segfault { .. } | KernelKind::GeneralProtection { .. } => Cause::SegmentationFault,
            KernelKind::InvalidOpcode { .. } => Cause::IllegalInstruction,
            KernelKind::Device { hardware: false, .. } => Cause::Failed,
            KernelKind::Hung => Cause::Hang,
            KernelKind::MemoryErrors { .. }
            | KernelKind::MachineCheck
            | KernelKind::Throttled
            | KernelKind::Device { .. }
            | KernelKind::DiskError { .. } => Cause::Hardware,
        }
    }
}

/// The events of a kernel log, in its order: lines of `/dev/kmsg`, of `dmesg`, or of the journal.
pub fn kernel_events(log: &KernelLog) -> Vec<KernelEvent> {
    let mut events: Vec<KernelEvent> = Vec::new();
    // What the kernel tells before it names a victim.
    let mut before = OomKill::default();
    for (line, raw) in log.lines.iter().enumerate() {
        let (since_boot_ms, text) = without_label(raw);
        if text.contains(" invoked oom-killer: ") {
            before = OomKill::default();
        }
        note_group(text, &mut before);
        let seen = match victim(text) {
            Some(named) => {
                if let Some(open) = announced(&mut events, &named) {
                    open.pid = Some(named.pid);
                    open.name = Some(named.name.into());
                    (open.line, open.text) = (line, cut(text, LONGEST).into());
                    if let KernelKind::OomKill(kill) = &mut open.kind {
                        read_kill(text, kill);
                    }
                    continue;
                }
                let mut kill = std::mem::take(&mut before);
                read_kill(text, &mut kill);
                Some((KernelKind::OomKill(kill), Some(named.pid), Some(named.name)))
            }
            None => machine_event(text),
        };
        let Some((kind, pid, name)) = seen else {
            continue;
        };
        // Heat and broken disks are reported for each processor and each block.
        if events
            .last()
            .is_some_and(|last| last.kind == kind && last.pid == pid && pid.is_none())
        {
            continue;
        }
        events.push(KernelEvent {
            kind,
            pid,
            name: name.map(Into::into),
            since_boot_ms,
            line,
            text: cut(text, LONGEST).into(),
        });
    }
    events
}

const LONGEST: usize = 1000;

/// The line without what the log puts before it, and the time since the machine started:
/// `6,1234,5678901,-;text`, `<6>[  518.05] text`, `[Mon Oct  3 13:52:42 2022] text`, `Nov 16 05:00:00 host kernel: text`.
fn without_label(raw: &str) -> (Option<u64>, &str) {
    if let Some((head, text)) = raw.split_once(';')
        && let [priority, sequence, micros, ..] = head.split(',').collect::<Vec<_>>()[..]
        && [priority, sequence, micros].iter().all(|part| is_number(part))
    {
        return (micros.parse::<u64>().ok().map(|micros| micros / 1000), text);
    }
    let mut text = raw.trim();
    let label = cut(text, 120);
    if let Some(at) = label
        .find("kernel: ")
        .filter(|at| *at == 0 || label[..*at].ends_with(' '))
    {
        text = &text[at + "kernel: ".len()..];
    } else if let Some(at) = ["systemd-oomd[", "earlyoom[", "systemd["]
        .iter()
        .find_map(|tag| label.find(tag))
    {
        return (None, &text[at..]);
    }
    if let Some((_, rest)) = text
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
        .filter(|(head, _)| is_number(head))
    {
        text = rest;
    }
    let Some((head, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return (None, text);
    };
    let head = head.trim();
    if let Ok(seconds) = head.parse::<f64>() {
        return (
            (seconds >= 0.0).then_some((seconds * 1000.0) as u64),
            rest.trim_start(),
        );
    }
    // The time of day: `dmesg -T`.
    if head.contains(':')
        && head.starts_with(char::is_alphabetic)
        && head.ends_with(|c: char| c.is_ascii_digit())
    {
        return (None, rest.trim_start());
    }
    (None, text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The limit and the groups, which stand on lines of their own.
fn note_group(text: &str, kill: &mut OomKill) {
    if let Some(rest) = text.strip_prefix("memory: usage ")
        && let Some((_, limit)) = rest.split_once("limit ")
    {
        kill.limit = size_at(limit, Unit::Binary);
    }
    // Before Linux 4.20: Task in /docker/4f killed as a result of limit of /docker/4f
    if let Some((task, limited)) = text
        .strip_prefix("Task in ")
        .and_then(|rest| rest.split_once(" killed as a result of limit of "))
    {
        kill.task_memcg = Some(task.trim().into());
        kill.oom_memcg = Some(limited.trim().into());
        kill.constraint = Constraint::Cgroup;
    }
}

/// Who a line says is killed.
struct Victim<'a> {
    pid: i32,
    name: &'a str,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    /// `oom-kill:constraint=…`, or `Kill process …` of older kernels, which may yet take a child instead.
    Announced,
    Killed,
}

fn victim(text: &str) -> Option<Victim<'_>> {
    if let Some(rest) = text.strip_prefix("oom-kill:constraint=") {
        let (rest, pid) = rest.rsplit_once(",pid=")?;
        return Some(Victim {
            pid: pid_at(pid)?,
            name: rest.rsplit_once(",task=")?.1,
            stage: Stage::Announced,
        });
    }
    let (rest, stage) = match text.split_once("Killed process ") {
        Some((_, rest)) => (rest, Stage::Killed),
        None => (
            text.split_once("ut of memory: Kill process ")?.1,
            Stage::Announced,
        ),
    };
    let pid = pid_at(rest)?;
    // A name can hold parentheses itself.
    let named = &rest[..rest
        .find("total-vm:")
        .or_else(|| rest.find(" score "))
        .unwrap_or(rest.len())];
    let name = &named[named.find('(')? + 1..];
    Some(Victim {
        pid,
        name: &name[..name.rfind(')')?],
        stage,
    })
}

/// The kill that was announced and that this line completes.
fn announced<'a>(events: &'a mut [KernelEvent], victim: &Victim<'_>) -> Option<&'a mut KernelEvent> {
    let last = events
        .iter_mut()
        .rfind(|event| matches!(event.kind, KernelKind::OomKill(_)))?;
    let KernelKind::OomKill(kill) = &last.kind else {
        return None;
    };
    let open = kill.total_vm.is_none();
    let sacrificed = last.text.contains("or sacrifice child");
    (open && victim.stage == Stage::Killed && (last.pid == Some(victim.pid) || sacrificed)).then_some(last)
}

/// What a line tells of a kill.
fn read_kill(text: &str, kill: &mut OomKill) {
    let field = |name: &str| {
        let at = text.find(name)?;
        let rest = &text[at + name.len()..];
        Some(&rest[..rest.find(',').unwrap_or(rest.len())])
    };
    let constraint = match field("oom-kill:constraint=") {
        Some("CONSTRAINT_NONE") => Constraint::Host,
        Some("CONSTRAINT_MEMCG") => Constraint::Cgroup,
        Some("CONSTRAINT_CPUSET") => Constraint::Cpuset,
        Some("CONSTRAINT_MEMORY_POLICY") => Constraint::MemoryPolicy,
        _ if text.contains("Memory cgroup out of memory") => Constraint::Cgroup,
        _ if text.contains("Out of memory") => Constraint::Host,
        _ => Constraint::Unknown,
    };
    // The first line tells it exactly, the second one calls a cpuset the machine.
    if kill.constraint == Constraint::Unknown {
        kill.constraint = constraint;
    }
    let group = |name: &str| field(name).map(str::to_string);
    kill.oom_memcg = group("oom_memcg=").or(kill.oom_memcg.take());
    kill.task_memcg = group("task_memcg=").or(kill.task_memcg.take());
    let size = |name: &str| field(name).and_then(|value| size_at(value, Unit::Binary));
    kill.total_vm = size("total-vm:").or(kill.total_vm);
    kill.anon_rss = size("anon-rss:").or(kill.anon_rss);
    kill.file_rss = size("file-rss:").or(kill.file_rss);
    kill.shmem_rss = size("shmem-rss:").or(kill.shmem_rss);
    kill.oom_score_adj = field("oom_score_adj:")
        .and_then(|value| value.split_whitespace().next()?.parse().ok())
        .or(kill.oom_score_adj);
}
