//! Disks that are full or may not be written: said plainly, with nothing half done left behind.

use std::ffi::CString;
use std::path::Path;

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::{Rows, binary};

/// A small file system, mounted for as long as this lives.
struct Disk<'a> {
    place: &'a Place,
    name: &'static str,
}

impl<'a> Disk<'a> {
    /// `None`, said on standard error, where mounting is not allowed.
    fn new(place: &'a Place, name: &'static str, options: &str) -> Option<Disk<'a>> {
        std::fs::create_dir(place.path(name)).unwrap();
        let (source, target, options) = (text("tmpfs"), path(&place.path(name)), text(options));
        // SAFETY: all arguments are C strings that live through the call.
        let mounted = unsafe {
            libc::mount(
                source.as_ptr(),
                target.as_ptr(),
                source.as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            eprintln!(
                "skipped: mounting a small disk: {}",
                std::io::Error::last_os_error()
            );
            return None;
        }
        Some(Disk { place, name })
    }

    /// From now on nothing can be written to it.
    fn make_read_only(&self) {
        let target = path(&self.place.path(self.name));
        let flags = libc::MS_REMOUNT | libc::MS_RDONLY;
        // SAFETY: the path is a C string; a remount needs no more.
        let mounted = unsafe {
            libc::mount(
                std::ptr::null(),
                target.as_ptr(),
                std::ptr::null(),
                flags,
                std::ptr::null(),
            )
        };
        assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
    }

    /// Leaves `bytes` free.
    fn fill(&self, bytes: u64) {
        let folder = path(&self.place.path(self.name));
        // SAFETY: all-zero bytes are a valid statvfs, and it is ours to write.
        let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above, and the path is a C string.
        assert_eq!(unsafe { libc::statvfs(folder.as_ptr(), &mut stat) }, 0);
        let free = stat.f_bavail * stat.f_frsize;
        let filler = vec![0; free.saturating_sub(bytes) as usize];
        self.place.write(&format!("{}/filler", self.name), filler);
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let target = path(&self.place.path(self.name));
        // SAFETY: the path is a C string. Detached, so that it goes whoever still looks at it.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

#[test]
fn no_room_for_a_home() {
    let place = Place::with(binary());
    let Some(disk) = Disk::new(&place, "disk", "size=300k") else {
        return;
    };
    disk.fill(8_000);
    let answer = place.run("train data.csv --target y --model linear --memory 64MB --home disk/home");
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("full") || answer.stderr.contains("No space left"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("hint: free some disk space"),
        "{}",
        answer.stderr
    );
}

#[test]
fn no_room_for_another_run() {
    let place = Place::with(binary());
    let Some(disk) = Disk::new(&place, "disk", "size=600k") else {
        return;
    };
    place.ok("train data.csv --target y --model linear --memory 64MB --home disk/home --name first");
    disk.fill(0);
    let answer = place.run("train data.csv --target y --model linear --memory 64MB --home disk/home");
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    assert!(answer.stderr.contains("full"), "{}", answer.stderr);
    // What was there can be read and used as soon as there is room again.
    std::fs::remove_file(place.path("disk/filler")).unwrap();
    assert_eq!(place.json("runs --home disk/home")[0]["name"], "first");
    place.ok("predict first data.csv --home disk/home");
}

#[test]
fn no_room_for_the_record_of_a_run() {
    // Sizes at which the store has room to begin with and none for all that follows.
    for size in ["100k", "130k", "160k", "190k", "220k"] {
        let place = Place::with(binary());
        let Some(_disk) = Disk::new(&place, "disk", &format!("size={size}")) else {
            return;
        };
        let answer = place.run("train data.csv --target y --model linear --memory 64MB --home disk/home");
        match answer.code {
            Some(0) => assert!(!answer.stdout.contains("unavailable of"), "{}", answer.stdout),
            code => {
                assert_eq!(code, Some(1), "{size}: {}", answer.stderr);
                assert!(
                    answer.stderr.contains("hint: free some disk space"),
                    "{size}: {}",
                    answer.stderr
                );
            }
        }
    }
}

/// A command goes on, its output and its exit code are passed on, and what was seen of its end is told.
#[test]
fn no_room_for_the_record_of_a_command() {
    let place = Place::new();
    let Some(_disk) = Disk::new(&place, "disk", "size=300k") else {
        return;
    };
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 3";
    let answer = place.run_words(&["run", "--home", "disk/home", "--", "sh", "-c", script]);
    assert_eq!(answer.code, Some(3));
    assert_eq!(answer.stdout.lines().last(), Some("line 19999"));
    assert!(
        answer.stderr.contains("No space left on device") && answer.stderr.contains("code 3 (proven)"),
        "{}",
        answer.stderr
    );
}

#[test]
fn no_room_for_predictions() {
    let place = Place::with(Rows::binary(50_000).csv());
    place.ok("train data.csv --target y --model linear --memory 64MB");
    let Some(_disk) = Disk::new(&place, "disk", "size=300k") else {
        return;
    };
    assert_snapshot!(place.run("predict last data.csv --output disk/out.csv").error(), @r"
    exit 1
    error: disk/out.csv: cannot be written: No space left on device (os error 28)
      hint: free some disk space, or choose another place
    ");
    let left = std::fs::read_dir(place.path("disk")).unwrap().count();
    assert_eq!(left, 0, "nothing is left on the disk");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = place
        .command("predict last data.csv")
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .spawn();
    assert_snapshot!(place.finish(child.unwrap()).error(), @r"
    exit 1
    error: standard output: cannot be written: No space left on device (os error 28)
      hint: free some disk space, or choose another place
    ");
}

#[test]
fn no_room_for_a_made_up_table() {
    let place = Place::new();
    let Some(_disk) = Disk::new(&place, "disk", "size=300k") else {
        return;
    };
    assert_snapshot!(place.run("demo --home disk/home").error(), @r"
    exit 1
    error: disk/home/demo: [size] are needed and [size] are free
      hint: free some space, choose another folder with --home, or a smaller --memory
    ");
    assert_snapshot!(place.run("demo --table disk/table.csv --size 1MB").error(), @r"
    exit 1
    error: disk/table.csv: cannot be written: No space left on device (os error 28)
      hint: free some disk space, or choose another folder
    ");
    assert!(!place.path("disk/table.csv").exists());
}

#[test]
fn a_home_that_may_not_be_written() {
    let place = Place::with(binary());
    let Some(disk) = Disk::new(&place, "disk", "size=1m") else {
        return;
    };
    place.ok("train data.csv --target y --model linear --memory 64MB --home disk/home --name kept");
    disk.make_read_only();
    let answer = place.run("train data.csv --target y --model linear --memory 64MB --home disk/home");
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("Read-only file system"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("hint: choose a writable folder"),
        "{}",
        answer.stderr
    );
    assert_snapshot!(place.run("train data.csv --target y --model linear --memory 64MB --home disk/other").error(), @r"
    exit 1
    error: cannot create disk/other/runs: Read-only file system (os error 30)
      hint: choose a writable folder with --home DIR
    ");
    // Reading needs no writing.
    assert_eq!(place.json("runs --home disk/home")[0]["name"], "kept");
    assert_eq!(place.json("show kept --home disk/home")["status"], "done");
    place.ok("predict kept data.csv --home disk/home");
    assert_snapshot!(place.run("predict kept data.csv --home disk/home --output disk/out.csv").error(), @r"
    exit 1
    error: disk/out.csv: cannot be written: Read-only file system (os error 30)
      hint: check that the folder exists and may be written
    ");
}

#[test]
fn a_home_that_is_a_file() {
    let place = Place::with(binary());
    place.write("file", "in the way");
    assert_snapshot!(place.run("train data.csv --target y --model linear --home file").error(), @r"
    exit 1
    error: cannot create file/runs: Not a directory (os error 20)
      hint: something else is in the way of file/runs: choose another --home DIR
    ");
    assert_snapshot!(place.run("runs --home file").error(), @r"
    exit 1
    error: cannot create file/runs: Not a directory (os error 20)
      hint: something else is in the way of file/runs: choose another --home DIR
    ");
    assert_eq!(place.read("file"), "in the way");
}
