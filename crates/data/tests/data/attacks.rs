//! Files made to hurt: each ends in an error that says what it is, in little memory, promptly.

use tidegate_data::{Error, Source, SourceOptions, Table, TableOptions};
use tidegate_memory::Ledger;

use crate::help::{BLOCK, ROOMY, Scratch, counting, gzip, options, read, zstd};

const SMALL: u64 = 8 << 20;

/// The error of looking at a file in a small budget, all of which comes back.
fn refused(bytes: impl AsRef<[u8]>) -> Error {
    let scratch = Scratch::new(bytes);
    let ledger = Ledger::new(SMALL);
    let found = Source::open(&[scratch.path()], &SourceOptions::default(), &["y"], &ledger)
        .and_then(|source| Table::open(source, "y", &TableOptions::default(), &ledger));
    let error = found.map(|_| ()).unwrap_err();
    assert_eq!(ledger.used(), 0);
    assert!(ledger.peak() <= SMALL);
    error
}

#[test]
fn an_endless_quote_names_the_row_where_it_starts() {
    let start = "a,y\n1,2\n2,\"3\n";
    match refused([start, &"4,5\n".repeat(1000)].concat()) {
        Error::UnclosedQuote { line: 3, .. } => {}
        other => panic!("{other:?}"),
    }
    // One that is larger than the budget is given up before its end. Its lines are of some length: for short ones,
    // which look like rows from the outside, the cells alone would want more than the budget.
    let line = format!("{}4,5\n", "0".repeat(60));
    let scratch = Scratch::new([start, &line.repeat(16 * BLOCK / line.len())].concat());
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    for threads in [1, 4] {
        match read(&table, &options(threads, None), SMALL) {
            Err(Error::RowTooLarge {
                line: 3,
                in_quotes: true,
                ..
            }) => {}
            other => panic!("{:?}", other.map(|read| read.counts)),
        }
    }
}

#[test]
fn an_endless_quote_deep_in_a_file_names_its_row() {
    let mut text = counting(150_000);
    text.push_str("1,\"2,3\n");
    text.push_str(&counting(1_000));
    let scratch = Scratch::new(text);
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    for threads in [1, 4] {
        match read(&table, &options(threads, None), ROOMY) {
            Err(Error::UnclosedQuote { line, .. }) => assert_eq!(line, 150_002),
            other => panic!("{:?}", other.map(|read| read.counts)),
        }
    }
}

#[test]
fn an_endless_row_is_given_up_at_the_budget() {
    match refused("1,2;".repeat(5 * BLOCK)) {
        Error::RowTooLarge {
            line: 1,
            in_quotes: false,
            ..
        } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_endless_row_of_separators_is_given_up_at_the_budget() {
    let error = refused([",".repeat(BLOCK / 2), "\n1,2\n".into()].concat());
    assert!(
        matches!(error, Error::Columns { .. } | Error::RowTooLarge { .. }),
        "{error:?}"
    );
}

#[test]
fn a_zip_bomb_in_gzip_streams_in_bounded_memory() {
    let bomb = gzip(&vec![0; 200_000_000]);
    assert!(bomb.len() < 2_000_000);
    let error = refused(bomb);
    assert!(
        matches!(error, Error::NotText { .. } | Error::RowTooLarge { line: 1, .. }),
        "{error:?}"
    );
}

#[test]
fn a_bomb_of_good_rows_streams_in_bounded_memory() {
    let text = format!("a,y\n1,2\n3,4\n5,7\n{}", "1,2\n".repeat(3_000_000));
    for bytes in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        assert!(bytes.len() < 400_000, "{} bytes", bytes.len());
        let scratch = Scratch::new(bytes);
        let table = scratch.open("y", &TableOptions::default()).unwrap();
        let ledger = Ledger::new(32 << 20);
        let counts = table.pass(
            &options(1, None),
            &ledger,
            |_| (),
            |_, (), _| Ok::<_, Error>(std::ops::ControlFlow::Continue(())),
        );
        assert_eq!(counts.unwrap().rows, 3_000_003);
        assert_eq!(ledger.used(), 0);
    }
}

/// A frame header (RFC 8878, 3.1.1.1) with a descriptor and what follows it.
fn frame(descriptor: u8, rest: &[u8]) -> Vec<u8> {
    [&[0x28, 0xb5, 0x2f, 0xfd, descriptor], rest, &[0; 64]].concat()
}

#[test]
fn a_zstd_frame_that_asks_for_a_huge_window_is_refused_by_name() {
    let mut found = Vec::new();
    for (what, bytes, wanted) in [
        ("128 MiB", frame(0, &[17 << 3]), 128 << 20),
        ("2 GiB", frame(0, &[21 << 3]), 2 << 30),
        ("3.75 TiB", frame(0, &[0xff]), (1 << 41) / 8 * 15),
        (
            "one segment of 1 GiB",
            frame(0xe0, &(1u64 << 30).to_le_bytes()),
            1 << 30,
        ),
        (
            "one segment of 16 EiB",
            frame(0xe0, &(u64::MAX - 7).to_le_bytes()),
            u64::MAX - 7,
        ),
    ] {
        match refused(bytes) {
            Error::Window { window, .. } if window == wanted => {}
            other => found.push(format!("{what}: {other:?}")),
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The first frame asks for little, the second for much.
#[test]
fn a_second_zstd_frame_cannot_ask_for_more() {
    let good = zstd(b"a,y\n1,2\n3,4\n5,7\n");
    let error = refused([good, frame(0, &[17 << 3])].concat());
    assert!(
        matches!(error, Error::Compressed { .. } | Error::Window { .. }),
        "{error:?}"
    );
}

#[test]
fn packed_files_that_are_cut_off() {
    let text = counting(200_000);
    for (name, bytes) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
        for keep in [12, 20, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
            let scratch = Scratch::new(&bytes[..keep]);
            let found = scratch.open("y", &TableOptions::default());
            let error = match found {
                Err(error) => error,
                Ok(table) => match read(&table, &options(2, None), ROOMY) {
                    Err(error) => error,
                    Ok(read) => panic!("{name} of {keep} bytes: {:?}", read.counts),
                },
            };
            match error {
                Error::Compressed { format, .. } => assert_eq!(format, name),
                other => panic!("{name} of {keep} of {} bytes: {other:?}", bytes.len()),
            }
        }
    }
}

#[test]
fn packed_files_with_a_flipped_bit_never_pass_for_whole() {
    let text = counting(20_000);
    for bytes in [
        gzip(text.as_bytes()),
        zstd::bulk::compress(text.as_bytes(), 1).unwrap(),
    ] {
        for at in (0..bytes.len()).step_by(bytes.len() / 40) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let scratch = Scratch::new(damaged);
            // Some bits carry nothing (a time, a name); no bit makes a panic or a hang.
            if let Ok(table) = scratch.open("y", &TableOptions::default()) {
                let _ = read(&table, &options(2, None), ROOMY);
            }
        }
    }
}

#[test]
fn zero_bytes_are_told() {
    for text in ["\0\0\0\0", "a,y\n1,2\n\0,3\n"] {
        let error = refused(text);
        assert!(matches!(error, Error::NotText { .. }), "{error:?}");
    }
}
