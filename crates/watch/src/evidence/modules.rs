//! The programs and libraries that a job ran, so that an address at which it crashed gets the name of a function.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::why::{Crash, KernelLog};

/// The looks at a process at which its mapped files are read: libraries are loaded as it goes on, and later seldom.
const LOOKS: [u32; 5] = [1, 4, 30, 300, 3_000];
const MOST_FILES: usize = 10_000;
const MOST_CRASHES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Modules {
    looks: HashMap<(i32, u64), u32>,
    files: BTreeSet<PathBuf>,
}

impl Modules {
    /// Looks at processes, by their number and start.
    pub(crate) fn look(&mut self, living: impl Iterator<Item = (i32, u64)>) {
        let mut looks = HashMap::new();
        for process in living {
            let number = self.looks.get(&process).copied().unwrap_or(0).saturating_add(1);
            looks.insert(process, number);
            if LOOKS.contains(&number) && self.files.len() < MOST_FILES {
                self.files.extend(mapped_code(process.0));
            }
        }
        self.looks = looks;
    }

    /// The functions in which processes crashed, as far as the kernel told their addresses and the files are still there.
    /// `program` may have crashed before anybody looked.
    pub(crate) fn crashes(&self, log: &KernelLog, program: Option<&Path>) -> Vec<Crash> {
        let found = program.map(search);
        let told = log.lines.iter().filter_map(|line| place_of(line));
        told.take(MOST_CRASHES)
            .filter_map(|place| {
                let named = |file: &&PathBuf| file.file_name().is_some_and(|name| name == place.module);
                let file = self.files.iter().chain(found.iter()).find(named)?;
                Some(Crash {
                    pid: place.pid,
                    module: file.clone(),
                    function: function_at(file, place.offset)?,
                })
            })
            .collect()
    }
}

/// The file of a program, as a shell finds it.
fn search(program: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join(program));
    let is_name = program.components().count() == 1;
    let found = is_name.then(|| folders.find(|file| file.is_file())).flatten();
    found.unwrap_or_else(|| program.into())
}

/// The files from which a process runs code.
fn mapped_code(pid: i32) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let code = maps.lines().filter_map(|line| {
        let (head, file) = line.split_once('/')?;
        let is_code = head.split(' ').nth(1)?.contains('x');
        is_code.then(|| PathBuf::from(format!("/{file}")))
    });
    code.collect()
}

struct Place<'l> {
    pid: i32,
    module: &'l str,
    /// In the file.
    offset: u64,
}

/// Where the kernel says that a process crashed. Linux 6.1 and later tell the place in the file:
/// `python3[7110]: segfault at 0 ip … error 4 in libc.so.6[167ad8,7f45fce44000+156000]`.
fn place_of(line: &str) -> Option<Place<'_>> {
    let (head, rest) = line
        .split_once("]: segfault at ")
        .or_else(|| line.split_once("] trap invalid opcode "))
        .or_else(|| line.split_once("] general protection"))?;
    let pid = head.rsplit('[').next()?.parse().ok()?;
    let (_, place) = rest.rsplit_once(" in ")?;
    let (module, numbers) = place.split_once('[')?;
    let (offset, _) = numbers.split_once(',')?;
    Some(Place {
        pid,
        module,
        offset: u64::from_str_radix(offset, 16).ok()?,
    })
}

/// The function that has its code there, by the symbols of the file.
fn function_at(file: &Path, offset: u64) -> Option<String> {
    let opened = std::fs::File::open(file).ok()?;
    // SAFETY: the file is only read. If it is cut meanwhile, reading would crash, which nobody does to a library in use.
    let bytes = unsafe { Mmap::map(&opened) }.ok()?;
    let object = object::File::parse(&*bytes).ok()?;
    let address = object.segments().find_map(|segment| {
        let (first, size) = segment.file_range();
        let within = offset.checked_sub(first).filter(|within| *within < size)?;
        segment.address().checked_add(within)
    })?;
    let holds = |symbol: &object::Symbol<'_, '_>| {
        let first = symbol.address();
        symbol.kind() == SymbolKind::Text && (first..first.saturating_add(symbol.size())).contains(&address)
    };
    let symbol = object
        .symbols()
        .find(holds)
        .or_else(|| object.dynamic_symbols().find(holds))?;
    symbol.name().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn places_are_read_from_what_the_kernel_says() {
        let check = |line: &str, expected: Option<(i32, &str, u64)>| {
            let found = place_of(line).map(|place| (place.pid, place.module, place.offset));
            assert_eq!(found, expected, "{line}");
        };
        let head = "6,1,2,-;python3[7110]: segfault at 0 ip 00007f45fcf85ad8 sp 00007ffee132b148 error 4";
        check(
            &format!("{head} in libc.so.6[167ad8,7f45fce44000+156000] likely on CPU 1 (core 1, socket 0)"),
            Some((7110, "libc.so.6", 0x167ad8)),
        );
        // Before Linux 6.1 there is no place in the file.
        check(&format!("{head} in libc.so.6[7f45fce44000+156000]"), None);
        check(head, None);
        check(
            "traps: ill[99] trap invalid opcode ip:55 sp:7f error:0 in ill[1139,55d0c0de1000+1000]",
            Some((99, "ill", 0x1139)),
        );
        check("", None);
    }

    #[test]
    fn a_crash_is_in_the_function_whose_code_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("crash.c");
        std::fs::write(
            &source,
            "int other(int x) { return x + 1; }\n\
             __attribute__((noinline)) int write_nowhere(int *p) { *p = 7; return *p; }\n\
             int main(int argc, char **argv) { return write_nowhere(argc > 1 ? &argc : 0) + other(1); }\n",
        )
        .unwrap();
        let program = folder.path().join("crash");
        let built = Command::new("cc").arg(&source).arg("-o").arg(&program).status();
        assert!(built.expect("a C compiler").success());
        let bytes = std::fs::read(&program).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let symbol = object
            .symbols()
            .find(|symbol| symbol.name() == Ok("write_nowhere"))
            .unwrap();
        // In a small program code lies in the file where it lies in memory.
        let offset = symbol.address() + 4;
        assert_eq!(function_at(&program, offset).as_deref(), Some("write_nowhere"));
        let log = KernelLog {
            lines: vec![format!(
                "crash[77]: segfault at 0 ip 5 sp 7 error 6 in crash[{offset:x},55fb6720a000+1000]"
            )],
            ..KernelLog::default()
        };
        let crash = Crash {
            pid: 77,
            module: program.clone(),
            function: "write_nowhere".into(),
        };
        assert_eq!(Modules::default().crashes(&log, Some(&program)), [crash]);
        assert_eq!(function_at(&program, bytes.len() as u64 + 1), None);
        assert_eq!(function_at(&source, offset), None, "no program");
    }

    #[test]
    fn the_files_of_a_process_are_those_it_runs() {
        let mut modules = Modules::default();
        let own = std::process::id().cast_signed();
        modules.look([(own, 1)].into_iter());
        let program = std::env::current_exe().unwrap();
        assert!(modules.files.contains(&program), "{:?}", modules.files);
        let log = KernelLog {
            lines: vec!["nothing".into()],
            ..KernelLog::default()
        };
        assert_eq!(modules.crashes(&log, None), []);
    }
}
