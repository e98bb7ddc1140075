//! Files that nobody has read: reading them leaves nothing in the page cache.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::draw::Drawing;
use crate::help::{Folder, feed, samples, shuffled};

/// Pages of a file that are in memory, and all it has.
fn pages(path: &Path) -> (usize, usize) {
    let file = File::open(path).unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    let mut found = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: the mapping is as long as the file and is unmapped below; only its residence is asked for.
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, bytes, found.as_mut_ptr()), 0);
        libc::munmap(map, bytes);
    }
    (found.iter().filter(|page| **page & 1 == 1).count(), found.len())
}

fn all_pages(files: &[PathBuf]) -> (usize, usize) {
    let add = |sum: (usize, usize), one: (usize, usize)| (sum.0 + one.0, sum.1 + one.1);
    files.iter().map(|path| pages(path)).fold((0, 0), add)
}

#[test]
fn an_epoch_over_cold_files_leaves_none_of_them_in_the_page_cache() {
    let folder = Folder::new(&[]);
    let noise = |seed: usize| {
        move |x: usize, y: usize| {
            let bits = ((x * 31 + y * 17 + seed) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [bits >> 32, bits >> 40, bits >> 48].map(|bits| bits as u8)
        }
    };
    let mut files = Vec::new();
    for i in 0..24 {
        let drawing = Drawing::new(500, 300, noise(i));
        let (ending, bytes) = match i % 3 {
            0 => ("png", drawing.png()),
            _ => ("jpg", drawing.jpeg()),
        };
        let name = format!("{}/{i:02}.{ending}", ["a", "b"][i % 2]);
        folder.write(&name, &bytes);
        files.push(folder.path(&name));
    }
    for path in &files {
        let file = File::open(path).unwrap();
        // What is not yet on disk cannot be dropped.
        file.sync_all().unwrap();
        // SAFETY: advice on an open descriptor touches no memory of ours.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    if all_pages(&files).0 > 0 {
        eprintln!("skipped: this file system keeps its files in memory");
        return;
    }
    let source = folder.open("").unwrap().training;
    assert_eq!(samples(&feed(&source, &shuffled())).len(), files.len());
    let (cached, all) = all_pages(&files);
    assert!(cached * 20 <= all, "{cached} of {all} pages are in memory");
}
