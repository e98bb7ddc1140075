//! Files that hold no table.

use insta::assert_snapshot;

use crate::help::{Answer, Place};
use crate::tables::{Rows, gzip, zstd};

fn train(contents: impl AsRef<[u8]>) -> Answer {
    Place::with(contents).run("train data.csv --target y --memory 64MB")
}

#[test]
fn no_file_at_all() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("empty.csv", "");
    assert_snapshot!(place.run("train absent.csv --target y").error(), @r"
    exit 2
    error: absent.csv: no such file
      hint: check the path
    ");
    assert_snapshot!(place.run("train absent.csv").error(), @r"
    exit 2
    error: absent.csv: no such file
      hint: check the path
    ");
    assert_snapshot!(place.run("train folder").error(), @r"
    exit 2
    error: folder: holds no data files
      hint: check the path; files whose names begin with . or _ are passed over
    ");
    assert_snapshot!(place.run("train empty.csv --target y").error(), @r"
    exit 1
    error: empty.csv: the file is empty
      hint: check what wrote the file
    ");
    assert_snapshot!(place.run("train /dev/null --target y").error(), @r"
    exit 2
    error: /dev/null: is neither a file nor a folder
      hint: write the data to a file first: every epoch reads it again
    ");
    assert!(!place.home.exists(), "a request that cannot work makes no home");
    assert_snapshot!(place.run("train folder --target y").error(), @r"
    exit 2
    error: [dir]/folder: holds no data files
      hint: check the path; files whose names begin with . or _ are passed over
    ");
}

#[test]
fn not_a_table() {
    let mut junk: Vec<u8> = (0..20_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    junk[0] = b'x';
    assert_snapshot!(train(&junk).error(), @r"
    exit 1
    error: [dir]/data.csv: is not a text table: it holds zero bytes
      hint: give a CSV file: plain, gzip or zstd
    ");
    assert_snapshot!(train(b"PAR1\x15\x04\x15\x10PAR1").error(), @r"
    exit 1
    error: [dir]/data.csv: the Parquet data is broken: EOF: it does not end in a footer
      hint: the file is cut off or damaged: copy or write it again
    ");
    assert_snapshot!(train(b"PK\x03\x04 a spreadsheet").error(), @r"
    exit 1
    error: [dir]/data.csv: the zip archive is broken: Missing end of central directory
      hint: the archive is cut off or damaged: copy or pack it again
    ");
    assert_snapshot!(train(b"\xff\xfea\0,\0y\0\n\0").error(), @r"
    exit 1
    error: [dir]/data.csv: is not a text table: it is UTF-16 (convert it: iconv -f utf-16 -t utf-8)
      hint: give a CSV file: plain, gzip or zstd
    ");
}

#[test]
fn only_a_header() {
    assert_snapshot!(train("a,b,y\n").error(), @r"
    exit 1
    error: [dir]/data.csv: holds a header and no rows
      hint: check what wrote the file; if the first row is data, say --header no
    ");
    assert_snapshot!(train("a,b,y").error(), @r"
    exit 1
    error: [dir]/data.csv: holds a header and no rows
      hint: check what wrote the file; if the first row is data, say --header no
    ");
    assert_snapshot!(train("\n\n\n").error(), @r"
    exit 1
    error: [dir]/data.csv: the file is empty
      hint: check what wrote the file
    ");
}

#[test]
fn compressed_and_cut_short() {
    let text = Rows::binary(50_000).csv();
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 2 / 3].to_vec();
    assert_snapshot!(place_in_file(&train(cut(gzip(&text)))), @r"
    exit 1
    error: [dir]/data.csv: the gzip data is broken near byte [n]: incomplete deflate stream
      hint: the file is cut off or damaged: copy or compress it again
    ");
    assert_snapshot!(place_in_file(&train(cut(zstd(&text)))), @r"
    exit 1
    error: [dir]/data.csv: the zstd data is broken near byte [n]: incomplete frame
      hint: the file is cut off or damaged: copy or compress it again
    ");
    // Not even a first block.
    assert_snapshot!(place_in_file(&train(&gzip(&text)[..200])), @r"
    exit 1
    error: [dir]/data.csv: the gzip data is broken near byte [n]: incomplete deflate stream
      hint: the file is cut off or damaged: copy or compress it again
    ");
    let mut damaged = gzip(&text);
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xff);
    assert_eq!(train(damaged).code, Some(1));
}

/// Where exactly a broken stream is noticed is up to the decoder.
fn place_in_file(answer: &Answer) -> String {
    let text = answer.error();
    let (before, after) = text.split_once("near byte ").expect("a place in the file");
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}near byte [n]{after}")
}
