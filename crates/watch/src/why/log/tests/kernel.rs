//! Lines of the kernel's log in the forms in which it is handed out.

use super::super::{Constraint, KernelEvent, KernelKind, OomKill, kernel_events};
use super::*;
use crate::why::{Cause, KernelLog};

fn events(text: &str) -> Vec<KernelEvent> {
    kernel_events(&KernelLog {
        source: "test".into(),
        unavailable: None,
        lines: text.lines().map(Into::into).collect(),
    })
}

fn only(text: &str) -> KernelEvent {
    let found = events(text);
    assert_eq!(found.len(), 1, "{text}\n{found:?}");
    found.into_iter().next().expect("counted above")
}

fn kill(event: &KernelEvent) -> &OomKill {
    let KernelKind::OomKill(kill) = &event.kind else {
        panic!("no kill: {event:?}");
    };
    kill
}

#[test]
fn a_kill_for_the_limit_of_a_cgroup() {
    let text = "\
python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999
memory: usage 524288kB, limit 524288kB, failcnt 65
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[  22921]     0 22921      242        1    28672        0          -998 pause
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-1.scope,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c7,task=python3,pid=19388,uid=1000
Memory cgroup out of memory: Killed process 19388 (python3) total-vm:22353736kB, anon-rss:552020kB, file-rss:12kB, shmem-rss:4kB, UID:1000 pgtables:7880kB oom_score_adj:999
oom_reaper: reaped process 19388 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB";
    for (form, since_boot_ms) in [
        (text.to_string(), None),
        (
            text.lines()
                .map(|line| format!("6,1234,5678901,-;{line}\n"))
                .collect(),
            Some(5678),
        ),
        (
            text.lines()
                .map(|line| format!("[  518.050606] {line}\n"))
                .collect(),
            Some(518_050),
        ),
        (
            text.lines()
                .map(|line| format!("<6>[  518.050606] {line}\n"))
                .collect(),
            Some(518_050),
        ),
        (
            text.lines()
                .map(|line| format!("[Mon Oct  3 13:52:42 2022] {line}\n"))
                .collect(),
            None,
        ),
        (
            text.lines()
                .map(|line| format!("Nov 16 05:00:00 host kernel: {line}\n"))
                .collect(),
            None,
        ),
        (
            text.lines()
                .map(|line| format!("May 15 23:09:30 host kernel: [  518.050606] {line}\n"))
                .collect(),
            Some(518_050),
        ),
    ] {
        let event = only(&form);
        assert_eq!(
            (event.pid, event.name.as_deref()),
            (Some(19388), Some("python3")),
            "{form}"
        );
        assert_eq!(event.since_boot_ms, since_boot_ms, "{form}");
        assert_eq!(event.cause(), Cause::CgroupOom);
        assert_eq!(event.line, 6);
        assert!(
            event
                .text
                .starts_with("Memory cgroup out of memory: Killed process 19388"),
            "{}",
            event.text
        );
        assert_eq!(
            *kill(&event),
            OomKill {
                constraint: Constraint::Cgroup,
                oom_memcg: Some("/kubepods/pod1".into()),
                task_memcg: Some("/kubepods/pod1/c7".into()),
                limit: Some(512 * MIB),
                total_vm: Some(22353736 * KIB),
                anon_rss: Some(552020 * KIB),
                file_rss: Some(12 * KIB),
                shmem_rss: Some(4 * KIB),
                oom_score_adj: Some(999),
            }
        );
    }
}

#[test]
fn kills_of_all_kinds() {
    for (text, constraint, cause, pid, name) in [
        (
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python3,pid=1234,uid=1000\nOut of memory: Killed process 1234 (python3) total-vm:8118236kB, anon-rss:8098448kB, file-rss:3264kB, shmem-rss:0kB, UID:1000 pgtables:15908kB oom_score_adj:0",
            Constraint::Host,
            Cause::HostOom,
            1234,
            "python3",
        ),
        (
            "kernel: [  518.061172] Out of memory: Killed process 15925 ((resolved)) total-vm:168424kB, anon-rss:4064kB, file-rss:3584kB, shmem-rss:0kB",
            Constraint::Host,
            Cause::HostOom,
            15925,
            "(resolved)",
        ),
        (
            "Aug 16 20:29:54 h kernel: Task in /docker/4f killed as a result of limit of /docker/4f\nAug 16 20:29:54 h kernel: Memory cgroup out of memory: Kill process 42453 (memcg_test_1) score 0 or sacrifice child\nAug 16 20:29:54 h kernel: Killed process 42453 (memcg_test_1), UID 0, total-vm:7296kB, anon-rss:96kB, file-rss:164kB, shmem-rss:0kB",
            Constraint::Cgroup,
            Cause::CgroupOom,
            42453,
            "memcg_test_1",
        ),
        // An older kernel that took the child.
        (
            "Out of memory: Kill process 27541 (bash) score 572 or sacrifice child\nKilled process 27777 (python) total-vm:8118236kB, anon-rss:8098448kB, file-rss:3264kB, shmem-rss:0kB",
            Constraint::Host,
            Cause::HostOom,
            27777,
            "python",
        ),
        (
            "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=job,mems_allowed=0,global_oom,task_memcg=/,task=a,b,pid=7,uid=0\nOut of memory: Killed process 7 (a,b) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB",
            Constraint::Cpuset,
            Cause::HostOom,
            7,
            "a,b",
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=0,cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=x,pid=7,uid=0",
            Constraint::MemoryPolicy,
            Cause::HostOom,
            7,
            "x",
        ),
        (
            "Killed process 99 (python) total-vm:8118236kB, anon-rss:8098448kB, file-rss:3264kB",
            Constraint::Unknown,
            Cause::HostOom,
            99,
            "python",
        ),
    ] {
        let event = only(text);
        assert_eq!(kill(&event).constraint, constraint, "{text}");
        assert_eq!(event.cause(), cause, "{text}");
        assert_eq!(
            (event.pid, event.name.as_deref()),
            (Some(pid), Some(name)),
            "{text}"
        );
    }
}

#[test]
fn a_group_is_killed_one_by_one() {
    let text = "\
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job,task=python3,pid=10,uid=0
Memory cgroup out of memory: Killed process 10 (python3) total-vm:4kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Tasks in /job are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 11 (python3) total-vm:4kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Memory cgroup out of memory: Killed process 12 (sh) total-vm:4kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Memory cgroup out of memory: OOM victim 12 (sh) is already exiting. Skip killing the task";
    let found = events(text);
    assert_eq!(
        found.iter().map(|event| event.pid).collect::<Vec<_>>(),
        [Some(10), Some(11), Some(12)]
    );
    assert!(found.iter().all(|event| event.cause() == Cause::CgroupOom));
}

#[test]
fn faults_and_errors_of_the_machine() {
    let module = |name: &str| Some(name.to_string());
    for (text, kind, cause, pid) in [
        (
            "[2523411.260096] python[1501]: segfault at 38 ip 00007fe1c927c73c sp 00007fffce6262b0 error 4 in ld-2.23.so[7fe1c9270000+26000]",
            KernelKind::Segfault {
                module: module("ld-2.23.so"),
                stack: false,
            },
            Cause::SegmentationFault,
            Some(1501),
        ),
        (
            "python3[77]: segfault at 7ffc1a2b3ff8 ip 000055d0c0de sp 00007ffc1a2b4000 error 6 in python3.11[55d0c0000000+400000] likely on CPU 3 (core 1, socket 0)",
            KernelKind::Segfault {
                module: module("python3.11"),
                stack: true,
            },
            Cause::StackOverflow,
            Some(77),
        ),
        (
            "traps: python3[1234] trap invalid opcode ip:7f0a sp:7ffd error:0 in libtorch_cpu.so[7f0000000000+1000]",
            KernelKind::InvalidOpcode {
                module: module("libtorch_cpu.so"),
            },
            Cause::IllegalInstruction,
            Some(1234),
        ),
        (
            "traps: python3[1234] general protection fault ip:7f0a sp:7ffd error:0 in libc-2.31.so[7f0000000000+1000]",
            KernelKind::GeneralProtection {
                module: module("libc-2.31.so"),
            },
            Cause::SegmentationFault,
            Some(1234),
        ),
        (
            "python3[88]: unhandled level 2 translation fault (11) at 0x00000038, esr 0x92000006, in libfoo.so[7f0000000000+1000]",
            KernelKind::Segfault {
                module: module("libfoo.so"),
                stack: false,
            },
            Cause::SegmentationFault,
            Some(88),
        ),
        (
            "Feb 23 03:28:16 h kernel: EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0xee30a0)",
            KernelKind::MemoryErrors {
                corrected: true,
                count: 1,
            },
            Cause::Hardware,
            None,
        ),
        (
            "[Mon Oct  3 13:52:42 2022] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
            KernelKind::MemoryErrors {
                corrected: true,
                count: 262,
            },
            Cause::Hardware,
            None,
        ),
        (
            "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
            KernelKind::MemoryErrors {
                corrected: false,
                count: 1,
            },
            Cause::Hardware,
            None,
        ),
        (
            "Memory failure: 0x2f4a1c: Sending SIGBUS to python3:4711 due to hardware memory corruption",
            KernelKind::MemoryErrors {
                corrected: false,
                count: 1,
            },
            Cause::Hardware,
            Some(4711),
        ),
        (
            "[202072.518835] mce: [Hardware Error]: Machine check events logged",
            KernelKind::MachineCheck,
            Cause::Hardware,
            None,
        ),
        (
            "[515033.638025] mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 128: 00000000087f0022",
            KernelKind::MachineCheck,
            Cause::Hardware,
            None,
        ),
        (
            "[76747.169397] mce: CPU2: Core temperature above threshold, cpu clock throttled (total events = 2675)\n[76747.169398] mce: CPU6: Core temperature above threshold, cpu clock throttled (total events = 2675)",
            KernelKind::Throttled,
            Cause::Hardware,
            None,
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            KernelKind::Device {
                xid: Some(79),
                hardware: true,
            },
            Cause::Hardware,
            None,
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
            KernelKind::Device {
                xid: Some(31),
                hardware: false,
            },
            Cause::Failed,
            Some(1234),
        ),
        (
            "NVRM: Xid (PCI:0000:44:00): 48, pid=77, Double Bit ECC Error",
            KernelKind::Device {
                xid: Some(48),
                hardware: true,
            },
            Cause::Hardware,
            Some(77),
        ),
        (
            "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
            KernelKind::DiskError {
                device: module("sda"),
            },
            Cause::Hardware,
            None,
        ),
        (
            "I/O error, dev nvme0n1, sector 123456 op 0x1:(WRITE) flags 0x800",
            KernelKind::DiskError {
                device: module("nvme0n1"),
            },
            Cause::Hardware,
            None,
        ),
        (
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm python3: reading directory lblock 0",
            KernelKind::DiskError {
                device: module("sda1"),
            },
            Cause::Hardware,
            None,
        ),
        (
            "INFO: task python3:1234 blocked for more than 120 seconds.",
            KernelKind::Hung,
            Cause::Hang,
            Some(1234),
        ),
        (
            "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [python3:99]",
            KernelKind::Hung,
            Cause::Hang,
            Some(99),
        ),
        (
            "Oct 07 19:16:10 host earlyoom[26328]: sending SIGTERM to process 63745 uid 1000 \"python3\": badness 748, VmRSS 538 MiB",
            KernelKind::OomDaemon { group: None },
            Cause::OomDaemon,
            Some(63745),
        ),
        (
            "Dec 18 19:34:56 d systemd-oomd[840]: Killed /user.slice/a.scope due to memory pressure for /user.slice being 51.07% > 50.00% for > 20s with reclaim activity",
            KernelKind::OomDaemon {
                group: module("/user.slice/a.scope"),
            },
            Cause::OomDaemon,
            None,
        ),
        (
            "Dec 18 19:34:56 d systemd[1837]: a.scope: systemd-oomd killed 12 process(es) in this unit.",
            KernelKind::OomDaemon {
                group: module("a.scope"),
            },
            Cause::OomDaemon,
            None,
        ),
        (
            "Dec 18 19:34:56 d systemd[1]: train.service: A process of this unit has been killed by the OOM killer.",
            KernelKind::OomKill(OomKill {
                task_memcg: module("train.service"),
                ..OomKill::default()
            }),
            Cause::HostOom,
            None,
        ),
    ] {
        let event = only(text);
        assert_eq!(event.kind, kind, "{text}");
        assert_eq!((event.cause(), event.pid), (cause, pid), "{text}");
    }
}

#[test]
fn ordinary_lines_are_no_events() {
    for text in [
        "EDAC MC: Ver: 3.0.0",
        "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0 (INTERRUPT)",
        "EDAC sbridge MC1: HANDLING MCE MEMORY ERROR",
        "mce: CPU supports 22 MCE banks",
        "[Tue Apr 21 16:02:26 2020] mce: Using 22 MCE banks",
        "mce: CPU6: Core temperature/speed normal",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05",
        "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ)",
        "sr 0:0:0:0: [sr0] I/O error, dev sr0, sector 0",
        "EXT4-fs (sda1): re-mounted. Quota mode: none.",
        "XFS (sda1): Mounting V5 Filesystem",
        "earlyoom[1460]: sending SIGTERM when mem <=  4.00% and swap <= 10.00%,",
        "systemd-oomd[93234]: Considered 97 cgroups for killing, top candidates were:",
        "systemd[1]: Started train.service.",
        "oom_reaper: reaped process 15784 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "6,1,2,-;",
        "",
    ] {
        let found = events(text);
        assert!(found.is_empty(), "{text}\n{found:?}");
    }
}
