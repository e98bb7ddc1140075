//! What speaks against the words of a log: that they are of this run, and the last of it.
//!
//! A program may print what another one said: a log that it shows, the failure of a test, what it coped with. Its words
//! prove something only where everything else fits them: the exit status, the stream, the silence after them, and whose
//! code they name.

use tidegate_runs::Stream;

use super::Reading;
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::facts::{Case, Counter, CounterKind, EndedChild, Facts, LogLine, Scope};
use crate::why::log::{Said, Traceback, is_farewell, last_of, tracebacks};
use crate::why::script::sources;
use crate::why::verdict::Grade;

/// Where so much speaks against it, it is of somebody else.
const FOREIGN: u32 = 3;
/// Code that is not of this run speaks louder than a stream or a code.
const NOT_OUR_CODE: u32 = 2;
/// What a program still prints on its way out comes within this time.
const AT_ONCE_MS: i64 = 500;

/// Programs that run others out of our sight.
const LAUNCHERS: [&str; 14] = [
    "docker",
    "podman",
    "nerdctl",
    "singularity",
    "apptainer",
    "kubectl",
    "ssh",
    "srun",
    "mpirun",
    "mpiexec",
    "ray",
    "dask",
    "sudo",
    "systemd-run",
];

/// Lowers what words claim by what speaks against them, leaves out what is of somebody else, and finds the traceback
/// that counts.
pub(super) fn weigh(reading: &mut Reading) {
    let case = reading.case;
    let weighed: Vec<(Traceback, u32)> = tracebacks(&case.log)
        .into_iter()
        .map(|traceback| {
            let doubts = of_traceback(case, &traceback);
            (traceback, doubts)
        })
        .collect();
    for mut said in std::mem::take(&mut reading.said) {
        let around = weighed
            .iter()
            .find(|(traceback, _)| traceback.lines.contains(&said.number));
        let doubts = around.map_or_else(|| of_line(case, &said), |(_, doubts)| *doubts);
        if doubts >= FOREIGN {
            continue;
        }
        if doubts > 0 {
            said.grade = said.grade.min(Grade::Likely);
            reading.doubted.insert(said.number);
        }
        reading.said.push(said);
    }
    let own = weighed.into_iter().filter(|(_, doubts)| *doubts < FOREIGN);
    let own = own.map(|(traceback, doubts)| {
        if doubts > 0 {
            reading.doubted.insert(traceback.number);
        }
        traceback
    });
    reading.traceback = last_of(own.collect());
}

fn of_traceback(case: &Case, traceback: &Traceback) -> u32 {
    let facts = &case.facts;
    let last = *traceback.lines.end();
    let stream = stream_of(case, traceback.number);
    let mut doubts = u32::from(!fits(traceback, facts.exit));
    // A log that has all in one stream was likely made so, with `2>&1`, if the code is this run's own.
    let apart = facts.streams_apart && case.log.iter().any(|line| line.stream == Stream::Err);
    let own = whose(case, traceback);
    if stream == Some(Stream::Out) && facts.streams_apart && (apart || own != Whose::Named) {
        doubts += 1;
    }
    doubts += u32::from(goes_on(case, last, stream));
    doubts
        + match own {
            Whose::Named | Whose::Possibly => 0,
            Whose::OutOfSight => 1,
            Whose::Other => NOT_OUR_CODE,
        }
}

/// A line by itself. Losses are ordinary output.
fn of_line(case: &Case, said: &Said) -> u32 {
    let facts = &case.facts;
    if said.cause == Cause::NotANumber {
        return 0;
    }
    let stream = stream_of(case, said.number);
    let on_output = facts.streams_apart && stream == Some(Stream::Out);
    // Whoever ends a job from outside says so whenever it likes, and does it by a signal.
    let ended = match said.cause {
        Cause::TimeLimit | Cause::OomDaemon => by_signal(facts),
        cause => !goes_on(case, said.number, stream) && !crashed_otherwise(cause, facts.exit),
    };
    let unseen = match said.cause {
        // The kernel would have counted it.
        Cause::CgroupOom | Cause::HostOom if none_was_killed(facts) => FOREIGN,
        Cause::OomDaemon if !ended => NOT_OUR_CODE,
        _ => u32::from(!ended),
    };
    // Words of Python where there was none.
    let of_python = ["MemoryError", "Error: [Errno ", "RecursionError"];
    let foreign = of_python.iter().any(|words| said.text.contains(words))
        && !facts.command.is_empty()
        && !is_launched(&facts.command)
        && !has_python(case, false);
    u32::from(on_output) + unseen + if foreign { NOT_OUR_CODE } else { 0 }
}

/// Whether a signal ended it, or one of its processes.
fn by_signal(facts: &Facts) -> bool {
    let by = |exit: Option<Exit>| match exit {
        Some(Exit::Signal(_) | Exit::Unknown) | None => true,
        Some(Exit::Code(code)) => code > 128,
    };
    let signal = |child: &EndedChild| matches!(child.exit, Some(Exit::Signal(_)));
    by(facts.exit) || facts.ended_children.iter().any(signal)
}

/// The job had a cgroup of its own, in which the kernel killed nobody.
fn none_was_killed(facts: &Facts) -> bool {
    let own = |counter: &&Counter| counter.kind == CounterKind::OomKills && counter.scope == Scope::Own;
    let counter = facts.counters.iter().find(own);
    counter.is_some_and(|counter| counter.rise() == Some(0)) && !is_launched(&facts.command)
}

/// A signal of its own making that the words do not explain.
fn crashed_otherwise(cause: Cause, exit: Option<Exit>) -> bool {
    let explained = matches!(
        cause,
        Cause::SegmentationFault | Cause::IllegalInstruction | Cause::StackOverflow | Cause::SharedMemory
    );
    let crashes = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
    !explained && matches!(exit, Some(Exit::Signal(signal)) if crashes.contains(&signal))
}

fn stream_of(case: &Case, number: u64) -> Option<Stream> {
    let line = case.log.iter().find(|line| line.number == number);
    line.map(|line| line.stream)
}

/// Whether it went on to speak of other things: at all where these words are, or later elsewhere. What it still holds of
/// its output it prints at its end, after its last words.
fn goes_on(case: &Case, last: u64, stream: Option<Stream>) -> bool {
    let time = |number: u64| case.log.iter().find(|line| line.number == number)?.time_ms;
    let time = time(last);
    let later = |line: &LogLine| {
        let times = line.time_ms.zip(time);
        times.is_some_and(|(then, time)| then.saturating_sub(time) >= AT_ONCE_MS)
    };
    let after = case.log.iter().filter(|line| line.number > last);
    after
        .filter(|line| Some(line.stream) == stream || later(line))
        .any(|line| !is_farewell(&line.text))
}

/// Whether a program that fails like this ends like this.
fn fits(traceback: &Traceback, exit: Option<Exit>) -> bool {
    let (code, signal) = match exit {
        None | Some(Exit::Unknown) => return true,
        Some(Exit::Code(code)) if code > 128 => (Some(code), Some(code - 128)),
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
    };
    let by = |expected: i32| signal == Some(expected);
    match traceback.exception.as_str() {
        "panic" => code == Some(101) || by(libc::SIGABRT),
        "Segmentation fault" => by(libc::SIGSEGV),
        "Bus error" => by(libc::SIGBUS),
        "Illegal instruction" => by(libc::SIGILL),
        "Floating point exception" => by(libc::SIGFPE),
        "Aborted" | "glibc" => by(libc::SIGABRT),
        "KeyboardInterrupt" => code == Some(1) || by(libc::SIGINT),
        name if name.contains("::") => by(libc::SIGABRT),
        name if name.ends_with("Sanitizer") => code != Some(0),
        _ if is_python(traceback) => code == Some(1),
        _ => code != Some(0),
    }
}

fn is_python(traceback: &Traceback) -> bool {
    let python = |file: &str| file.ends_with(".py") || file.starts_with('<') || file.ends_with(".ipynb");
    let mut frames = traceback.chain().flat_map(|traceback| &traceback.frames);
    frames.any(|frame| python(&frame.file))
}

/// Whose code a traceback goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The command names it, or the stacks of the run went through it.
    Named,
    /// Nothing speaks for or against it.
    Possibly,
    /// Of a process that is not ours to see.
    OutOfSight,
    Other,
}

fn whose(case: &Case, traceback: &Traceback) -> Whose {
    let command = &case.facts.command;
    if command.is_empty() || !is_python(traceback) {
        return Whose::Possibly;
    }
    // Libraries are everybody's.
    let library = ["site-packages", "dist-packages", "/lib/python"];
    let frames: Vec<&str> = traceback
        .chain()
        .flat_map(|traceback| &traceback.frames)
        .map(|frame| frame.file.as_str())
        .filter(|file| !library.iter().any(|part| file.contains(part)) || file.contains("runpy"))
        .collect();
    let named = sources(case);
    let ours = |file: &str| {
        let name = name_of(file);
        command.iter().any(|word| name_of(word) == name) || named.iter().any(|path| path.ends_with(name))
    };
    let inline = |file: &str| match file {
        "<string>" => command.iter().any(|word| word == "-c"),
        "<stdin>" => true,
        file => file.contains("runpy") && command.iter().any(|word| word == "-m"),
    };
    if frames.iter().any(|file| ours(file) || inline(file)) {
        return Whose::Named;
    }
    if is_launched(command) {
        return Whose::OutOfSight;
    }
    // Where the script itself is known, what does not go through it is of a process below it, or of nobody here.
    let script = command
        .iter()
        .position(|word| is_python_name(name_of(word)))
        .and_then(|at| command.get(at + 1))
        .is_some_and(|word| word.ends_with(".py"));
    match has_python(case, script) {
        true => Whose::Possibly,
        false => Whose::Other,
    }
}

/// What runs is not ours to see.
fn is_launched(command: &[String]) -> bool {
    command.iter().any(|word| LAUNCHERS.contains(&name_of(word)))
}

/// Whether a Python was seen in the run, if so wanted one below its first process.
fn has_python(case: &Case, below: bool) -> bool {
    let facts = &case.facts;
    let seen = case
        .processes
        .iter()
        .map(|process| (process.pid, process.name.as_str()));
    let ended = facts
        .ended_children
        .iter()
        .map(|child| (child.pid, child.name.as_str()));
    let named = facts.command.iter().any(|word| is_python_name(name_of(word)));
    let first = !below && (named || !case.stacks.samples.is_empty());
    let is_first = |pid: i32| Some(pid) == facts.pid;
    first
        || seen
            .chain(ended)
            .any(|(pid, name)| !(below && is_first(pid)) && is_python_name(name))
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_python_name(name: &str) -> bool {
    [
        "python",
        "pypy",
        "ipython",
        "torchrun",
        "pytest",
        "uv",
        "accelerate",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::judge;

    const TRACEBACK: &str = "err Traceback (most recent call last):
err   File \"/home/ada/train.py\", line 12, in <module>
err     table = load()
err MemoryError";

    /// A case of a command, its exit status and its log, of which each line begins with its stream.
    fn case(command: &str, exit: Exit, log: &str) -> Case {
        let line = |(number, line): (u64, &str)| {
            let (stream, text) = line.split_once(' ').unwrap_or((line, ""));
            let stream = match stream {
                "out" => Stream::Out,
                _ => Stream::Err,
            };
            LogLine {
                number,
                time_ms: None,
                stream,
                text: text.into(),
            }
        };
        let mut case = Case::default();
        case.facts.command = command.split(' ').map(Into::into).collect();
        case.facts.exit = Some(exit);
        case.facts.streams_apart = true;
        case.log = (1..).zip(log.lines()).map(line).collect();
        case
    }

    fn check(command: &str, exit: i32, log: &str, expected: (Cause, Grade)) {
        let verdict = judge(&case(command, Exit::Code(exit), log));
        assert_eq!(
            (verdict.cause, verdict.grade),
            expected,
            "{command}\n{log}\n{verdict:?}"
        );
    }

    #[test]
    fn last_words_of_this_run_prove_its_end() {
        use Cause::{Failed, MemoryError};
        use Grade::{Likely, Proven};
        let python = "python train.py";
        let on_output = TRACEBACK.replace("err ", "out ");
        check(python, 1, TRACEBACK, (MemoryError, Proven));
        check("sh -c python\ttrain.py", 1, TRACEBACK, (MemoryError, Proven));
        // Output may be flushed after it, and those around it say their part.
        check(
            python,
            1,
            &format!("{TRACEBACK}\nout epoch 1"),
            (MemoryError, Proven),
        );
        check(
            python,
            1,
            &format!("{TRACEBACK}\nerr wandb: done\nerr srun: error"),
            (MemoryError, Proven),
        );
        // Everything in one stream, as with 2>&1.
        check(python, 1, &on_output, (MemoryError, Proven));
        // Each of these is how a program speaks of another's end.
        check(python, 3, TRACEBACK, (MemoryError, Likely));
        check(
            python,
            1,
            &format!("{TRACEBACK}\nerr Ran 1 test in 0.1 s"),
            (MemoryError, Likely),
        );
        check(
            python,
            1,
            &format!("{on_output}\nerr done"),
            (MemoryError, Likely),
        );
        check("python show.py", 1, TRACEBACK, (MemoryError, Likely));
        check("docker run -t image", 1, &on_output, (MemoryError, Likely));
        // And all of them together.
        check(
            "python show.py",
            4,
            &format!("{on_output}\nout end of job 17"),
            (Failed, Proven),
        );
        check("bash show.sh", 1, &on_output, (Failed, Proven));
        check(
            "bash show.sh",
            1,
            "out job.log:MemoryError: Unable to allocate 7.45 GiB for an array",
            (Failed, Proven),
        );
    }

    #[test]
    fn a_line_is_doubted_like_a_traceback() {
        use Cause::{DiskFull, TimeLimit};
        use Grade::{Likely, Proven};
        let full = "cp: write error: No space left on device";
        check("cp a b", 1, &format!("err {full}"), (DiskFull, Proven));
        check("cp a b", 1, &format!("out {full}"), (DiskFull, Likely));
        check("sh a.sh", 1, &format!("err {full}\nerr next"), (DiskFull, Likely));
        let slurm =
            "err slurmstepd: error: *** JOB 7 ON c1 CANCELLED AT 2025-10-02T14:02:37 DUE TO TIME LIMIT ***";
        check("a", 143, slurm, (TimeLimit, Proven));
        check("a", 1, slurm, (TimeLimit, Likely));
    }

    #[test]
    fn one_loss_is_no_training() {
        use Cause::{NotANumber, Success};
        use Grade::{Likely, Proven};
        check("python a.py", 0, "out loss = nan in the paper", (Success, Proven));
        check("python a.py", 1, "out step 1 loss: nan", (NotANumber, Likely));
        check(
            "python a.py",
            0,
            "out step 1 loss: 0.5\nout step 2 loss: nan",
            (NotANumber, Likely),
        );
        check(
            "python a.py",
            0,
            "out Loss is nan, stopping training",
            (NotANumber, Proven),
        );
    }

    #[test]
    fn texts_of_others_do_nothing_to_a_terminal() {
        let log = "err cp: write error: \x1b[31mNo space left on device\x07\x1b[0m \u{9b}2J";
        let verdict = judge(&case("cp a b", Exit::Code(1), log));
        let texts = verdict.evidence.iter().map(|evidence| &evidence.text);
        for text in texts.chain([&verdict.sentence]) {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        assert_eq!(verdict.cause, Cause::DiskFull);
    }

    #[test]
    fn kills_that_nobody_counted_are_of_others() {
        let log = "out slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.";
        let mut case = case("bash show.sh", Exit::Code(1), log);
        assert_eq!(judge(&case).cause, Cause::CgroupOom);
        case.facts.counters.push(Counter {
            kind: CounterKind::OomKills,
            scope: Scope::Own,
            source: "memory.events".into(),
            before: Some(0),
            after: Some(0),
        });
        assert_eq!(judge(&case).cause, Cause::Failed);
        // Elsewhere somebody else counts.
        case.facts.command[0] = "srun".into();
        assert_eq!(judge(&case).cause, Cause::CgroupOom);
        let log = "out systemd-oomd killed 3 process(es) in this unit.";
        check("bash show.sh", 1, log, (Cause::Failed, Grade::Proven));
        check("bash show.sh", 137, log, (Cause::OomDaemon, Grade::Likely));
    }

    #[test]
    fn output_that_comes_later_speaks_against_it() {
        let log = "err cache: write error: No space left on device\nout epoch 2\nout epoch 3";
        let mut case = case("a", Exit::Code(2), log);
        for (line, time) in case.log.iter_mut().zip([1_000, 1_100, 1_200]) {
            line.time_ms = Some(time);
        }
        assert_eq!(judge(&case).grade, Grade::Proven);
        case.log[2].time_ms = Some(1_900);
        assert_eq!(judge(&case).grade, Grade::Likely);
    }

    #[test]
    fn an_earlier_traceback_counts_where_the_last_is_foreign() {
        let foreign = "out Traceback (most recent call last):\nout   File \"/b.py\", line 1, in <module>\nout KeyError: 'b'\nout end";
        check(
            "python train.py",
            1,
            &format!("{TRACEBACK}\n{foreign}"),
            (Cause::MemoryError, Grade::Proven),
        );
    }
}
