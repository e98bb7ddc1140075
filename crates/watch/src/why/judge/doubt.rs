//! What speaks against the words of a log: that they are of this run, and the last of it.
//!
//! A program may print what another one said: a log that it shows, the failure of a test, what it coped with. Its words
//! prove something only where everything else fits them: the exit status, the stream, the silence after them, and whose
//! code they name.

use super::Reading;
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::facts::{Case, LogLine};
use crate::why::log::{Said, Traceback, is_farewell, tracebacks};
use crate::why::verdict::Grade;
use tidegate_runs::Stream;

/// Where so much speaks against it, it is of somebody else.
const FOREIGN: u32 = 3;
/// Code that is not of this run speaks louder than a stream or a code.
const NOT_OUR_CODE: u32 = 2;

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

/// Lowers what words claim by what speaks against them, and leaves out what is of somebody else.
pub(super) fn weigh(reading: &mut Reading) {
    let case = reading.case;
    let weighed: Vec<(Traceback, u32)> = tracebacks(&case.log)
        .into_iter()
        .map(|traceback| {
            let doubts = of_traceback(case, &traceback);
            (traceback, doubts)
        })
        .collect();
    let around = |number: u64| {
        weighed
            .iter()
            .find(|(traceback, _)| traceback.lines.contains(&number))
    };
    let mut kept = Vec::new();
    for mut said in std::mem::take(&mut reading.said) {
        let doubts = match around(said.number) {
            Some((_, doubts)) => *doubts,
            None => of_line(case, &said),
        };
        if around(said.number).is_some() && doubts >= FOREIGN {
            continue;
        }
        if doubts > 0 {
            said.grade = said.grade.min(Grade::Likely);
            reading.doubted.insert(said.number);
        }
        kept.push(said);
    }
    reading.said = kept;
    if let Some(traceback) = reading.traceback.take() {
        let doubts = around(traceback.number).map_or(0, |(_, doubts)| *doubts);
        if doubts > 0 {
            reading.doubted.insert(traceback.number);
        }
        reading.traceback = (doubts < FOREIGN).then_some(traceback);
    }
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
    let from_outside = matches!(said.cause, Cause::TimeLimit | Cause::OomDaemon);
    let by_signal = match facts.exit {
        Some(Exit::Signal(_) | Exit::Unknown) | None => true,
        Some(Exit::Code(code)) => code > 128,
    };
    let ended = match from_outside {
        true => by_signal,
        false => !goes_on(case, said.number, stream) && !crashed_otherwise(said.cause, facts.exit),
    };
    u32::from(on_output) + u32::from(!ended)
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

/// Whether it went on to speak of other things, where its errors go.
fn goes_on(case: &Case, last: u64, stream: Option<Stream>) -> bool {
    let same = |line: &&LogLine| line.number > last && Some(line.stream) == stream;
    case.log.iter().filter(same).any(|line| !is_farewell(&line.text))
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
    let ours = |file: &str| {
        let name = name_of(file);
        command.iter().any(|word| name_of(word) == name)
            || case
                .stacks
                .frames
                .iter()
                .any(|frame| name_of(&frame.file) == name)
    };
    let inline = |file: &str| match file {
        "<string>" => command.iter().any(|word| word == "-c"),
        "<stdin>" => true,
        file => file.contains("runpy") && command.iter().any(|word| word == "-m"),
    };
    if frames.iter().any(|file| ours(file) || inline(file)) {
        return Whose::Named;
    }
    if command.iter().any(|word| LAUNCHERS.contains(&name_of(word))) {
        return Whose::OutOfSight;
    }
    // The script itself is known: what does not go through it is of a process below it, or of nobody here.
    let script = command
        .iter()
        .position(|word| is_python_name(name_of(word)))
        .and_then(|at| command.get(at + 1))
        .is_some_and(|word| word.ends_with(".py"));
    let first = case.facts.pid;
    let seen = case
        .processes
        .iter()
        .map(|process| (process.pid, process.name.as_str()));
    let ended = case
        .facts
        .ended_children
        .iter()
        .map(|child| (child.pid, child.name.as_str()));
    let below = seen
        .chain(ended)
        .any(|(pid, name)| (!script || Some(pid) != first) && is_python_name(name));
    match below {
        true => Whose::Possibly,
        false => Whose::Other,
    }
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
