//! Single lines of the kernel's log and the journal: faults of processes, errors of the machine, watchers that killed.

use super::kernel::{KernelKind, OomKill};
use super::wording::pid_at;

/// What a line says, of which process.
pub(super) type Event<'a> = (KernelKind, Option<i32>, Option<&'a str>);

pub(super) fn machine_event(text: &str) -> Option<Event<'_>> {
    fault(text)
        .or_else(|| memory(text))
        .or_else(|| device(text))
        .or_else(|| disk(text))
        .or_else(|| hung(text))
        .or_else(|| watcher(text))
}

/// `python3[1501]: segfault at 38 ip 00007fe1c927c73c sp 00007fffce6262b0 error 4 in libfoo.so[7fe1c9270000+26000]`,
/// `traps: python3[1501] trap invalid opcode ip:7fe1c927c73c sp:7fffce6262b0 error:0 in libfoo.so[7fe1c9270000+26000]`.
fn fault(text: &str) -> Option<Event<'_>> {
    let module = |rest: &str| {
        let name = rest.rsplit_once(" in ")?.1;
        Some(name.split('[').next()?.to_string())
    };
    let (words, at) = [
        "]: segfault at ",
        "] trap invalid opcode ",
        "] general protection ",
        "]: unhandled level ",
    ]
    .iter()
    .find_map(|words| Some((*words, text.find(words)?)))?;
    let (head, rest) = (&text[..at], &text[at + words.len()..]);
    let (name, pid) = head.rsplit_once('[')?;
    let (name, pid) = (name.trim_start_matches("traps: "), pid_at(pid)?);
    let kind = match words {
        "] trap invalid opcode " => KernelKind::InvalidOpcode { module: module(rest) },
        "] general protection " => KernelKind::GeneralProtection { module: module(rest) },
        "]: unhandled level " if !rest.contains("fault (11)") => return None,
        _ => KernelKind::Segfault {
            module: module(rest),
            stack: at_stack(rest),
        },
    };
    Some((kind, Some(pid), Some(name)))
}

/// An address just below the stack pointer is one that the stack would have grown to. The kernel itself took 64 KiB and a
/// little for that distance.
fn at_stack(text: &str) -> bool {
    let hex = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
        u64::from_str_radix(&text[..end], 16).ok()
    };
    let pointer = text.split_once(" sp ").and_then(|(_, rest)| hex(rest));
    hex(text).zip(pointer).is_some_and(|(address, pointer)| {
        pointer.wrapping_sub(address) < 65_792 || address.wrapping_sub(pointer) < 4096
    })
}

/// `EDAC MC0: 1 CE memory read error on …`, `mce: [Hardware Error]: Machine check events logged`,
/// `Memory failure: 0x2f: Sending SIGBUS to python3:77 due to hardware memory corruption`, and heat.
fn memory(text: &str) -> Option<Event<'_>> {
    if let Some((_, rest)) = text
        .strip_prefix("EDAC MC")
        .and_then(|rest| rest.split_once(": "))
    {
        let (count, rest) = rest.split_once(' ')?;
        let corrected = match rest.split(' ').next()? {
            "CE" => true,
            "UE" => false,
            _ => return None,
        };
        let count = count.parse().ok()?;
        return Some((KernelKind::MemoryErrors { corrected, count }, None, None));
    }
    if text.contains("due to hardware memory corruption") {
        let kind = KernelKind::MemoryErrors {
            corrected: false,
            count: 1,
        };
        let (_, rest) = text.split_once(" to ").or_else(|| text.split_once("Killing "))?;
        let (name, pid) = rest.split(" due to").next()?.rsplit_once(':')?;
        return Some((kind, pid_at(pid), Some(name)));
    }
    let logged = text.contains("[Hardware Error]: Machine check events logged");
    if logged || (text.contains("[Hardware Error]: CPU ") && text.contains(": Machine Check")) {
        return Some((KernelKind::MachineCheck, None, None));
    }
    let throttled = text.contains("temperature above threshold, cpu clock throttled");
    throttled.then_some((KernelKind::Throttled, None, None))
}

/// Whether an error of an NVIDIA device is of the device or its link, and not of the program on it.
pub(in crate::why) fn xid_is_hardware(xid: u32) -> bool {
    /// Errors that a program makes by itself, by NVIDIA's catalogue of Xid errors.
    const OF_PROGRAMS: [u32; 5] = [13, 31, 43, 45, 68];
    !OF_PROGRAMS.contains(&xid)
}

/// `NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.`
fn device(text: &str) -> Option<Event<'_>> {
    if let Some((_, rest)) = text
        .split_once("NVRM: Xid (")
        .and_then(|(_, rest)| rest.split_once("): "))
    {
        let xid = u32::try_from(pid_at(rest)?).ok()?;
        let kind = KernelKind::Device {
            xid: Some(xid),
            hardware: xid_is_hardware(xid),
        };
        let pid = rest.split_once("pid=").and_then(|(_, pid)| pid_at(pid));
        let name = rest
            .split_once("name=")
            .map(|(_, name)| name.split(',').next().unwrap_or(name));
        return Some((kind, pid, name.filter(|name| !name.contains('<'))));
    }
    let lost = text.contains("NVRM") && text.contains("fallen off the bus");
    let reset = text.contains("amdgpu")
        && (text.contains("GPU reset begin") || text.contains("uncorrectable hardware error"));
    let kind = KernelKind::Device {
        xid: None,
        hardware: true,
    };
    (lost || reset).then_some((kind, None, None))
}

/// `blk_update_request: I/O error, dev sda, sector 2048`, `EXT4-fs error (device sda1): …`, `XFS (sda1): metadata I/O error`.
fn disk(text: &str) -> Option<Event<'_>> {
    let name = if let Some((_, rest)) = text.split_once("I/O error, dev ") {
        rest.split([',', ' ']).next()
    } else if let Some((_, rest)) = text.split_once("Buffer I/O error on dev ") {
        rest.split([',', ' ']).next()
    } else if let Some((_, rest)) = ["EXT4-fs error (device ", "BTRFS error (device ", "XFS ("]
        .iter()
        .find_map(|words| text.split_once(words))
        .filter(|_| !text.contains("XFS (") || text.contains("I/O error") || text.contains("orruption"))
    {
        rest.split([')', ':']).next()
    } else if text.contains("nvme") && (text.contains("controller is down") || text.contains(", aborting")) {
        text.split_once("nvme nvme")
            .and_then(|(before, _)| text[before.len() + 5..].split(':').next())
    } else {
        return None;
    };
    // Floppies and empty drives for discs fail all day.
    let device = name.map(str::to_string).filter(|name| !name.is_empty());
    if device
        .as_deref()
        .is_some_and(|name| name.starts_with("fd") || name.starts_with("sr"))
    {
        return None;
    }
    Some((KernelKind::DiskError { device }, None, None))
}

/// `INFO: task python3:1234 blocked for more than 120 seconds.`,
/// `watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [python3:1234]`.
fn hung(text: &str) -> Option<Event<'_>> {
    let process = if let Some((task, _)) = text
        .split_once("INFO: task ")
        .and_then(|(_, rest)| rest.split_once(" blocked for more than "))
    {
        task
    } else if text.contains("soft lockup - CPU#") {
        text.rsplit_once('[')?.1.split(']').next()?
    } else {
        return None;
    };
    let (name, pid) = process.rsplit_once(':')?;
    Some((KernelKind::Hung, Some(pid_at(pid)?), Some(name)))
}

/// Watchers in the journal that killed before the kernel had to, and systemd's word for that the kernel did.
fn watcher(text: &str) -> Option<Event<'_>> {
    if let Some(rest) = [
        "sending SIGTERM to process ",
        "sending SIGKILL to process ",
        "killing process ",
    ]
    .iter()
    .find_map(|words| Some(text.split_once(words)?.1))
    .filter(|rest| rest.contains("VmRSS"))
    {
        let name = rest.split('"').nth(1);
        return Some((KernelKind::OomDaemon { group: None }, Some(pid_at(rest)?), name));
    }
    let tagged = text.split_once("]: ").map_or(text, |(_, rest)| rest);
    if text.starts_with("systemd-oomd[") {
        let group = tagged
            .strip_prefix("Killed ")
            .or_else(|| tagged.strip_prefix("Marked "))?;
        if !group.contains(" due to memory ") {
            return None;
        }
        let group = group.split(" due to ").next()?.trim_end_matches(" for killing");
        let group = Some(group.to_string());
        return Some((KernelKind::OomDaemon { group }, None, None));
    }
    if !text.starts_with("systemd[") {
        return None;
    }
    let (unit, words) = tagged.split_once(": ")?;
    if words.starts_with("systemd-oomd killed ") && !words.starts_with("systemd-oomd killed 0 ") {
        let group = Some(unit.to_string());
        return Some((KernelKind::OomDaemon { group }, None, None));
    }
    if words.starts_with("A process of this unit has been killed by the OOM killer") {
        let kill = OomKill {
            task_memcg: Some(unit.into()),
            ..OomKill::default()
        };
        return Some((KernelKind::OomKill(kill), None, None));
    }
    None
}
