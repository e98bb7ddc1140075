//! Files, folders and patterns, as people name them.

use tidegate_memory::Ledger;

use super::{Folder, ROOMY, check_pieces, lines, open_with, rows};
use crate::source::{Source, SourceOptions};
use crate::{Error, Position};

const A: &[u8] = b"x,y\n1,2\n";
const B: &[u8] = b"x,y\n3,4\n";

#[test]
fn a_folder_is_its_data_files_in_the_order_of_their_names() {
    let folder = Folder::new(&[
        ("t/part-2.csv", B),
        ("t/part-1.csv", A),
        ("t/_SUCCESS", b""),
        ("t/.part-1.csv.crc", b"crc"),
        ("t/README.md", b"about the data"),
    ]);
    assert_eq!(lines(&folder.open("t").unwrap()), ["1 2", "3 4"]);
    let folder = Folder::new(&[("t/part-00001", B), ("t/part-00000", A)]);
    assert_eq!(lines(&folder.open("t").unwrap()), ["1 2", "3 4"]);
}

#[test]
fn a_pattern_is_what_it_matches() {
    let folder = Folder::new(&[
        ("2020/a.csv", A),
        ("2021/b.csv", B),
        ("2021/_c.csv", b"no,table\n"),
        ("[odd].csv", b"x,y\n5,6\n"),
    ]);
    for (pattern, expected) in [
        ("202?/*.csv", vec!["1 2", "3 4"]),
        ("202[1-9]/*.csv", vec!["3 4"]),
        ("**/[ab].csv", vec!["1 2", "3 4"]),
        ("202[!0]/*", vec!["3 4"]),
        // A file of just that name comes first.
        ("[odd].csv", vec!["5 6"]),
    ] {
        assert_eq!(lines(&folder.open(pattern).unwrap()), expected, "{pattern}");
    }
}

#[test]
fn several_names_make_one_source() {
    let folder = Folder::new(&[("a.csv", A), ("more/b.csv", B)]);
    let paths = [folder.path("more"), folder.path("a.csv")];
    let ledger = Ledger::new(ROOMY);
    let source = Source::open(&paths, &SourceOptions::default(), &[], &ledger).unwrap();
    assert_eq!(
        rows(&source).unwrap(),
        [
            (0, 2, vec!["3".into(), "4".into()]),
            (1, 2, vec!["1".into(), "2".into()])
        ]
    );
    assert_eq!((source.n_rows(), source.bytes()), (Some(2), 16));
}

#[test]
fn what_cannot_be_one_table_is_refused() {
    let folder = Folder::new(&[
        ("empty/.hidden", b""),
        ("nested/inner/a.csv", A),
        ("nested/b.csv", B),
        ("mixed/a.csv", A),
        ("mixed/b.zip", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ("blank/a.csv", b""),
        ("blank/b.csv", b""),
        ("bare/a.csv", b"x,y\n"),
        ("bare/b.csv", b"x,y\n"),
        ("drift/a.csv", A),
        ("drift/b.csv", b"x,z,y\n1,2,3\n"),
        ("narrow/a.csv", b"1,2\n3,4\n"),
        ("narrow/b.csv", b"1\n2\n"),
    ]);
    for (name, expected) in [
        ("gone.csv", "gone.csv: no such file"),
        ("gone-*.csv", "gone-*.csv: no file matches this pattern"),
        ("empty", "empty: holds no data files"),
        ("nested", "nested: holds folders, such as nested/inner"),
        ("mixed", "mixed/a.csv is CSV and mixed/b.zip is a zip archive"),
        ("blank", "blank/a.csv: the file is empty"),
        ("bare", "bare/a.csv: holds a header and no rows"),
        (
            "drift",
            "drift/a.csv and drift/b.csv have different columns: the second has \"z\" beside",
        ),
        (
            "narrow",
            "narrow/a.csv and narrow/b.csv have different columns: the second lacks \"column_2\"",
        ),
        (
            "a[.csv",
            "a[.csv: not a pattern: invalid range pattern (character PLACE)",
        ),
    ] {
        let at = folder.path("a[").as_os_str().len();
        let expected = expected.replace("PLACE", &at.to_string());
        assert_eq!(folder.refused(name), expected, "{name}");
    }
}

#[test]
fn columns_are_found_by_name_in_every_file() {
    let folder = Folder::new(&[
        ("t/0.csv", b"x,y\n"),
        ("t/a.csv", A),
        ("t/b.csv", b"y,x\n4,3\n"),
        ("t/c.csv", b"x;y\n5;6\n"),
        ("t/d.csv", b"y,x\n"),
        ("t/e.csv", b""),
    ]);
    assert_eq!(lines(&folder.open("t").unwrap()), ["1 2", "3 4", "5 6"]);
}

/// Thousands of files, most of them opened by their first row alone.
#[test]
fn many_files_are_opened_quickly_in_little_memory() {
    let folder = Folder::new(&[]);
    let n = 2000;
    for i in 0..n {
        let text = match i % 3 {
            0 => format!("x,y\n{i},a\n"),
            1 => format!("y,x\r\nb,{i}\r\n"),
            _ => format!("\u{feff}x,y\n{i},\"c\nd\"\n"),
        };
        folder.write(&format!("t/{i:05}.csv"), text.as_bytes());
    }
    let ledger = Ledger::new(8 << 20);
    let started = std::time::Instant::now();
    let source = Source::open(&[folder.path("t")], &SourceOptions::default(), &[], &ledger).unwrap();
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!((ledger.used(), source.n_parts()), (0, n));
    assert_eq!(source.n_rows(), None);
    assert!(source.rows_guess().is_some_and(|rows| rows >= n as u64));
    let rows = rows(&source).unwrap();
    assert_eq!(rows.len(), n);
    for (part, line, cells) in rows {
        assert_eq!((line, &cells[0]), (2, &part.to_string()));
        assert_eq!(cells[1], ["a", "b", "c\nd"][part % 3]);
    }
    folder.write("t/01000.csv", b"x,z\n1,2\n");
    let drift = Source::open(&[folder.path("t")], &SourceOptions::default(), &[], &ledger).err();
    assert!(
        matches!(&drift, Some(Error::Drift { other, .. }) if other.ends_with("01000.csv")),
        "{drift:?}"
    );
}

#[test]
fn files_are_read_one_after_another_at_any_budget() {
    let long: Vec<u8> = (0..300_000)
        .flat_map(|i| format!("{i},{}\n", i % 7).into_bytes())
        .collect();
    let folder = Folder::new(&[("t/1.csv", A), ("t/3.csv", B)]);
    folder.write("t/2.csv", &[b"x,y\n", long.as_slice()].concat());
    check_pieces(&folder.open("t").unwrap(), 8 << 20);
}

#[test]
fn names_beyond_the_budget_are_refused() {
    let folder = Folder::new(&[]);
    for i in 0..500 {
        folder.write(&format!("t/{i}.csv"), A);
    }
    let ledger = Ledger::new(200 << 10);
    let refused = Source::open(&[folder.path("t")], &SourceOptions::default(), &[], &ledger).err();
    assert!(matches!(refused, Some(Error::Memory { .. })), "{refused:?}");
    assert_eq!(ledger.used(), 0);
}

#[test]
fn a_file_that_changes_after_it_was_opened_is_noticed() {
    let folder = Folder::new(&[("a.csv", A)]);
    let source = open_with(&folder.path("a.csv"), &SourceOptions::default()).unwrap();
    folder.write("a.csv", b"x,y\n1,2\n3,4\n");
    assert!(matches!(rows(&source), Err(Error::Changed { .. })));
    assert_eq!(Position::default().piece, 0);
}
