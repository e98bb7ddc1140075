//! Made-up cases of runs on accelerators.

use tidegate_runs::{DeviceRecord, Stream};

use crate::ended::Exit;
use crate::why::{
    Case, Cause, Counter, CounterKind, DeviceFault, Facts, Grade, LogLine, Scope, Standing, Verdict, devices,
    judge,
};

const GB: u64 = 1_000_000_000;
const CUDA_OOM: &str = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.90 GiB of which 381.00 MiB is free.";
const CUDA_ERROR: &str = "RuntimeError: CUDA error: unspecified launch failure";

fn look(index: u32, used: u64, own: Option<u64>) -> DeviceRecord {
    DeviceRecord {
        index,
        name: "NVIDIA T4".into(),
        memory_used: Some(used),
        memory_total: Some(16 * GB),
        memory_own: own,
        temperature: Some(71),
        throttle_reasons: Some(4),
        ..DeviceRecord::default()
    }
}

/// A run that ended with code 1 and a traceback with this last line.
fn case(last_line: &str, records: Vec<DeviceRecord>, xids: &[(u32, Option<u32>)]) -> Case {
    let lines = [
        "Traceback (most recent call last):",
        "  File \"train.py\", line 7, in <module>",
        "    step()",
        last_line,
    ];
    let lines: &[&str] = if last_line.is_empty() { &[] } else { &lines };
    let log = (1..).zip(lines).map(|(number, text)| LogLine {
        number,
        time_ms: None,
        stream: Stream::Err,
        text: (*text).into(),
    });
    let fault = |&(index, xid): &(u32, Option<u32>)| DeviceFault {
        time_ms: 12_340,
        index,
        xid,
    };
    Case {
        facts: Facts {
            exit: Some(Exit::Code(1)),
            device_faults: xids.iter().map(fault).collect(),
            ..Facts::default()
        },
        log: log.collect(),
        devices: records,
        ..Case::default()
    }
}

fn check(case: &Case, cause: Cause, grade: Grade, words: &[&str]) -> Verdict {
    let verdict = judge(case);
    let texts: Vec<String> = verdict
        .evidence
        .iter()
        .map(|line| format!("{} {} [{}]", line.standing.as_str(), line.text, line.source))
        .collect();
    assert_eq!(
        (verdict.cause, verdict.grade),
        (cause, grade),
        "{}: {texts:#?}",
        verdict.sentence
    );
    for word in words {
        let found = texts.iter().any(|text| text.contains(word)) || verdict.sentence.contains(word);
        assert!(found, "{word:?} is not in {:?}, {texts:#?}", verdict.sentence);
    }
    verdict
}

#[test]
fn memory_of_the_device_stands_beside_the_words() {
    let full = look(0, 15_600_000_000, Some(15_100_000_000));
    check(
        &case(
            CUDA_OOM,
            vec![look(0, GB, Some(GB / 2)), full, look(1, 16 * GB, Some(0))],
            &[],
        ),
        Cause::DeviceMemory,
        Grade::Proven,
        &["observed 15.6 GB of 16 GB in use, 15.1 GB by this run [NVML, device 0 (NVIDIA T4)]"],
    );
    check(
        &case(CUDA_OOM, vec![look(0, 15 * GB, Some(2 * GB))], &[]),
        Cause::DeviceMemory,
        Grade::Proven,
        &["15 GB of 16 GB in use, 2 GB by this run: others held most of it"],
    );
    check(
        &case(CUDA_OOM, vec![look(0, 15 * GB, None)], &[]),
        Cause::DeviceMemory,
        Grade::Proven,
        &["partial 15 GB of 16 GB in use, how much of it by this run is not known"],
    );
    let mut without = case(CUDA_OOM, Vec::new(), &[]);
    without.facts.devices_unavailable = Some("no NVIDIA driver".into());
    check(
        &without,
        Cause::DeviceMemory,
        Grade::Proven,
        &["unavailable no NVIDIA driver [accelerators, NVML]"],
    );
}

#[test]
fn a_machine_without_a_driver_is_no_news() {
    let mut case = case("ValueError: x", Vec::new(), &[]);
    case.facts.devices_unavailable = Some("no NVIDIA driver".into());
    let verdict = judge(&case);
    assert!(
        verdict
            .evidence
            .iter()
            .all(|line| line.standing != Standing::Unavailable)
    );
    assert!(verdict.devices.is_empty());
    // One that answered first and then no more is.
    case.devices = vec![look(0, GB, Some(0))];
    case.facts.devices_unavailable = Some("the driver has not answered for 9.0 s".into());
    check(
        &case,
        verdict.cause,
        verdict.grade,
        &["unavailable the driver has not answered"],
    );
}

#[test]
fn an_error_of_the_device_that_the_run_was_on_is_hardware() {
    let ours = || vec![look(0, 9 * GB, Some(8 * GB)), look(1, GB, Some(0))];
    let sentence = "the GPU failed: Xid 79, the GPU has fallen off the bus, on device 0 (NVIDIA T4)";
    let verdict = check(
        &case(CUDA_ERROR, ours(), &[(0, Some(79))]),
        Cause::Hardware,
        Grade::Proven,
        &[
            sentence,
            "observed Xid 79",
            "12.3 s after the start [NVML, device 0 (NVIDIA T4)]",
        ],
    );
    assert_eq!(
        verdict
            .evidence
            .iter()
            .filter(|line| line.text.contains("Xid 79"))
            .count(),
        1
    );
    assert!(verdict.notes[0].contains("Xid 79"), "{:?}", verdict.notes);
    // Lost, without a number; and without a word of the job.
    check(
        &case(CUDA_ERROR, ours(), &[(0, None)]),
        Cause::Hardware,
        Grade::Proven,
        &["its driver has lost it"],
    );
    check(
        &case("", ours(), &[(0, Some(79))]),
        Cause::Hardware,
        Grade::Likely,
        &[sentence],
    );
    // Whose device it was is not known.
    let unknown = vec![look(0, GB, None), look(0, 9 * GB, None)];
    check(
        &case(CUDA_ERROR, unknown, &[(0, Some(48))]),
        Cause::Hardware,
        Grade::Likely,
        &["Xid 48"],
    );
}

#[test]
fn the_kernel_s_word_of_a_process_of_the_run_will_do() {
    let line = |pid: i32| {
        let mut case = case(CUDA_ERROR, Vec::new(), &[]);
        case.facts.pid = Some(77);
        case.facts.kernel.source = "/dev/kmsg".into();
        let text = format!("NVRM: Xid (PCI:0000:44:00): 48, pid={pid}, Double Bit ECC Error");
        case.facts.kernel.lines = vec![text];
        case
    };
    let words = [
        "the GPU failed: NVRM: Xid (PCI:0000:44:00): 48",
        "[the kernel's log, /dev/kmsg]",
    ];
    check(&line(77), Cause::Hardware, Grade::Likely, &words);
    assert_ne!(judge(&line(78)).cause, Cause::Hardware);
}

#[test]
fn errors_of_programs_of_others_and_of_the_code_are_not() {
    let ours = || vec![look(0, 9 * GB, Some(8 * GB)), look(1, GB, Some(0))];
    let illegal = "RuntimeError: CUDA error: an illegal memory access was encountered";
    let verdict = judge(&case(illegal, ours(), &[(0, Some(31))]));
    assert_eq!(verdict.cause, Cause::Failed);
    assert!(
        verdict
            .evidence
            .iter()
            .any(|line| line.text.starts_with("Xid 31, code on the GPU touched"))
    );
    let check_not = |case: &Case| {
        let verdict = judge(case);
        assert_ne!(verdict.cause, Cause::Hardware, "{}", verdict.sentence);
        assert!(
            verdict.notes.iter().any(|note| note.contains("Xid 79")),
            "{:?}",
            verdict.notes
        );
    };
    check_not(&case(CUDA_ERROR, ours(), &[(1, Some(79))]));
    check_not(&case("ValueError: no column y", ours(), &[(0, Some(79))]));
    check_not(&case(CUDA_OOM, ours(), &[(0, Some(79))]));
    let mut done = case("", ours(), &[(0, Some(79))]);
    done.facts.exit = Some(Exit::Code(0));
    check_not(&done);
}

#[test]
fn risen_errors_are_evidence_and_heat_alone_is_none() {
    let counter = |after| Counter {
        kind: CounterKind::DeviceErrors,
        scope: Scope::Host,
        source: "NVML, device 0 (NVIDIA T4), uncorrected ECC errors".into(),
        before: Some(0),
        after: Some(after),
    };
    let hot = || DeviceRecord {
        throttle_reasons: Some(0x48),
        temperature: Some(93),
        ..look(0, 9 * GB, Some(8 * GB))
    };
    for last_line in ["", CUDA_ERROR] {
        let mut risen = case(last_line, vec![hot()], &[]);
        risen.facts.counters.push(counter(2));
        check(
            &risen,
            Cause::Hardware,
            Grade::Likely,
            &[
                "partial 0 before, 2 after",
                "partial it was slowed down by heat, at up to 93 °C",
            ],
        );
    }
    let mut calm = case("", vec![hot()], &[]);
    calm.facts.counters.push(counter(0));
    let verdict = judge(&calm);
    assert_ne!(verdict.cause, Cause::Hardware);
    assert!(
        verdict
            .notes
            .iter()
            .any(|note| note.contains("slowed down by heat")),
        "{:?}",
        verdict.notes
    );
}

#[test]
fn devices_that_the_run_used_get_a_line() {
    let mut case = case(
        "",
        vec![
            look(0, 15_600_000_000, Some(15_100_000_000)),
            look(1, 9 * GB, Some(0)),
            look(2, GB, None),
            look(3, GB, None),
            DeviceRecord {
                throttle_reasons: Some(0x28),
                ..look(3, 5 * GB, None)
            },
        ],
        &[(0, Some(31))],
    );
    let lines: Vec<String> = devices(&case).iter().map(|device| device.line()).collect();
    assert_eq!(
        lines,
        [
            "device 0, NVIDIA T4: 15.6 GB of 16 GB in use at the most, 15.1 GB by this run, at up to 71 °C, Xid 31",
            "device 3, NVIDIA T4: 5 GB of 16 GB in use at the most, at up to 71 °C, slowed down by heat",
        ]
    );
    case.devices.clear();
    assert!(devices(&case).is_empty());
}
