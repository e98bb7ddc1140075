//! Tables in zip archives.

use std::io::Write;

use proptest::prelude::*;
use rawzip::{CompressionMethod, ZipArchiveWriter, ZipDataWriter};

use super::{Folder, check_pieces, lines, open, rows};
use crate::Error;

/// An archive of so many members.
fn archive(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, text, method) in members {
        let (mut entry, config) = archive
            .new_file(name)
            .compression_method(*method)
            .start()
            .unwrap();
        let descriptor = match method {
            CompressionMethod::Deflate => {
                let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
                let mut writer = config.wrap(encoder);
                writer.write_all(text).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            }
            CompressionMethod::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(&mut entry, 1).unwrap();
                let mut writer = config.wrap(encoder);
                writer.write_all(text).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            }
            _ => {
                let mut writer: ZipDataWriter<_> = config.wrap(&mut entry);
                writer.write_all(text).unwrap();
                writer.finish().unwrap().1
            }
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

const METHODS: [CompressionMethod; 3] = [
    CompressionMethod::Store,
    CompressionMethod::Deflate,
    CompressionMethod::Zstd,
];

#[test]
fn members_are_parts_however_they_are_packed() {
    for method in METHODS {
        let bytes = archive(&[
            ("docs/README.txt", b"about", method),
            ("b.csv", b"y,x\n4,3\n", method),
            ("a.csv", b"x,y\n1,2\n", method),
            ("__MACOSX/._a.csv", b"junk", method),
            ("empty.csv", b"", method),
        ]);
        let folder = Folder::new(&[("t.zip", &bytes)]);
        let source = folder.open("t.zip").unwrap();
        assert_eq!(lines(&source), ["1 2", "3 4"], "{method:?}");
        assert!(source.path().ends_with("t.zip/a.csv"));
    }
}

#[test]
fn one_member_is_a_table_whatever_its_name() {
    let bytes = archive(&[("export.dat", b"x;y\n1;2\n", CompressionMethod::Deflate)]);
    let folder = Folder::new(&[("t.zip", &bytes)]);
    assert_eq!(lines(&folder.open("t.zip").unwrap()), ["1 2"]);
}

#[test]
fn long_members_are_streamed_and_taken_up_anywhere() {
    let long: Vec<u8> = (0..200_000)
        .flat_map(|i| format!("{i},some words {}\n", i % 7).into_bytes())
        .collect();
    let long = [b"x,y\n", long.as_slice()].concat();
    for method in METHODS {
        let bytes = archive(&[("a.csv", &long, method), ("b.csv", b"x,y\n1,2\n", method)]);
        let folder = Folder::new(&[("t.zip", &bytes)]);
        check_pieces(&folder.open("t.zip").unwrap(), 12 << 20);
    }
}

#[test]
fn what_is_no_table_is_refused_by_name() {
    let text = b"x,y\n1,2\n".as_slice();
    let mut encrypted = archive(&[("a.csv", text, CompressionMethod::Deflate)]);
    encrypted[6] |= 1;
    let mut method = archive(&[("a.csv", text, CompressionMethod::Deflate)]);
    let directory = method
        .windows(4)
        .position(|bytes| bytes == b"PK\x01\x02")
        .unwrap();
    method[directory + 10] = 14;
    let mut crc = archive(&[("a.csv", text, CompressionMethod::Deflate)]);
    crc[directory + 16] ^= 1;
    let mut long = archive(&[("a.csv", text, CompressionMethod::Deflate)]);
    long[directory + 24] += 1;
    let folder = Folder::new(&[
        ("encrypted.zip", &encrypted),
        ("method.zip", &method),
        ("crc.zip", &crc),
        ("long.zip", &long),
        ("none.zip", &archive(&[])),
        (
            "sheet.xlsx",
            &archive(&[
                ("[Content_Types].xml", b"<x/>", CompressionMethod::Store),
                ("xl/workbook.xml", b"<x/>", CompressionMethod::Store),
            ]),
        ),
        (
            "twice.zip",
            &archive(&[(
                "a.zip",
                &archive(&[("a.csv", text, CompressionMethod::Store)]),
                CompressionMethod::Store,
            )]),
        ),
        ("cut.zip", &crc[..crc.len() - 30]),
    ]);
    for (name, expected) in [
        (
            "encrypted.zip",
            "encrypted.zip/a.csv: cannot be read from its archive: it is encrypted",
        ),
        (
            "method.zip",
            "method.zip/a.csv: cannot be read from its archive: it is compressed with Lzma",
        ),
        ("crc.zip", "crc.zip/a.csv: the zip data is broken near byte 16"),
        ("long.zip", "long.zip/a.csv: the zip data is broken near byte 16"),
        ("none.zip", "none.zip: holds no table: 0 files"),
        (
            "sheet.xlsx",
            "sheet.xlsx: holds no table: 2 files, \"[Content_Types].xml\", \"xl/workbook.xml\" among them",
        ),
        (
            "twice.zip",
            "twice.zip/a.zip: cannot be read from its archive: it is a zip archive",
        ),
        ("cut.zip", "cut.zip: the zip archive is broken"),
    ] {
        assert_eq!(folder.refused(name), expected, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is done to an archive ends in rows or in an error.
    #[test]
    fn broken_archives_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(), method in 0usize..3) {
        let mut bytes = archive(&[
            ("a.csv", b"x,y\n1,2\n3,4\n", METHODS[method]),
            ("b.csv", b"x,y\n5,6\n", METHODS[method]),
        ]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 2 * usize::from(byte % 2 == 0));
        let folder = Folder::new(&[("t.zip", &bytes)]);
        if let Ok(source) = open(&folder.path("t.zip")) {
            let _: Result<_, Error> = rows(&source);
        }
    }
}
