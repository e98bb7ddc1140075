//! Every format and type of number comes out as the numbers that were written.

use tidegate_data::arrays::{Element, Keep, Kept};
use tidegate_memory::Ledger;

use crate::help::{
    Folder, ROOMY, gzip, idx, in_place, inputs, npy, npz, pixels, targets, thirds, without_labels,
};

/// Numbers of one type, in both orders of bytes.
macro_rules! numbers {
    ($name:literal, $element:expr, $type:ty, $values:expr) => {{
        let values: Vec<$type> = $values.to_vec();
        let expected: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        for (mark, bytes) in [
            (
                "<",
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect::<Vec<u8>>(),
            ),
            (">", values.iter().flat_map(|value| value.to_be_bytes()).collect()),
        ] {
            let descr = format!("{mark}{}", $name);
            let folder = Folder::new(&[("x.npy", npy(&descr, &[2, values.len() / 2], &bytes))]);
            let mut source = folder.open_with("x.npy", &without_labels()).unwrap();
            assert_eq!((source.element(), source.n_samples()), ($element, 2));
            assert_eq!(source.shape(), [values.len() / 2]);
            assert_eq!(inputs(&source), expected, "{descr}");
            let keep = Keep {
                memory: 1 << 20,
                ..Keep::default()
            };
            assert_eq!(source.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Memory);
            assert_eq!(inputs(&source), expected, "{descr} in memory");
        }
    }};
}

#[test]
fn numbers_of_every_type_and_order_of_bytes() {
    numbers!("u1", Element::U8, u8, [0, 1, 200, 255]);
    numbers!("i1", Element::I8, i8, [-128, -1, 0, 127]);
    numbers!("u2", Element::U16, u16, [0, 1, 256, 65_535]);
    numbers!("i2", Element::I16, i16, [-32_768, -2, 258, 32_767]);
    numbers!("u4", Element::U32, u32, [0, 70_000, 1, u32::MAX]);
    numbers!("i4", Element::I32, i32, [i32::MIN, -1, 70_000, i32::MAX]);
    numbers!("u8", Element::U64, u64, [0, 1, 1 << 40, u64::MAX]);
    numbers!("i8", Element::I64, i64, [i64::MIN, -1, 1 << 40, i64::MAX]);
    numbers!("f4", Element::F32, f32, [-1.5, 0.0, 3.25e-30, f32::INFINITY]);
    numbers!("f8", Element::F64, f64, [-1.5, 0.1, 3.25e-30, 1e30]);
}

#[test]
fn half_numbers_and_booleans() {
    let halves = [0x3c00u16, 0xc000, 0x0001, 0x7bff];
    let expected = [1.0, -2.0, 2f32.powi(-24), 65_504.0];
    for (descr, bytes) in [
        (
            "<f2",
            halves
                .iter()
                .flat_map(|half| half.to_le_bytes())
                .collect::<Vec<u8>>(),
        ),
        (">f2", halves.iter().flat_map(|half| half.to_be_bytes()).collect()),
    ] {
        let folder = Folder::new(&[("x.npy", npy(descr, &[2, 2], &bytes))]);
        assert_eq!(
            inputs(&folder.open_with("x.npy", &without_labels()).unwrap()),
            expected
        );
    }
    let folder = Folder::new(&[("x.npy", npy("|b1", &[3], &[1, 0, 1]))]);
    let source = folder.open_with("x.npy", &without_labels()).unwrap();
    assert_eq!((inputs(&source), source.shape()), (vec![1.0, 0.0, 1.0], &[1][..]));
}

#[test]
fn idx_of_every_type_plain_and_compressed() {
    let check = |code: u8, element: Element, bytes: Vec<u8>, expected: &[f32]| {
        let data = idx(code, &[2, 2], &bytes);
        let folder = Folder::new(&[("x.idx", data.clone()), ("x2.idx.gz", gzip(&data))]);
        let plain = folder.open_with("x.idx", &without_labels()).unwrap();
        assert_eq!((plain.element(), plain.shape()), (element, &[2][..]));
        assert_eq!(inputs(&plain), expected, "{element}");
        let mut packed = folder.open_with("x2.idx.gz", &without_labels()).unwrap();
        assert!(packed.is_packed());
        let keep = Keep {
            memory: 1 << 20,
            ..Keep::default()
        };
        packed.keep(&keep, &Ledger::new(ROOMY)).unwrap();
        assert_eq!(inputs(&packed), expected, "{element}, compressed");
    };
    check(0x08, Element::U8, vec![0, 7, 128, 255], &[0.0, 7.0, 128.0, 255.0]);
    check(0x09, Element::I8, vec![0, 7, 128, 255], &[0.0, 7.0, -128.0, -1.0]);
    let shorts = [-3i16, 256, 1, 2];
    check(
        0x0b,
        Element::I16,
        shorts.iter().flat_map(|x| x.to_be_bytes()).collect(),
        &[-3.0, 256.0, 1.0, 2.0],
    );
    let integers = [-3i32, 70_000, 1, 2];
    let bytes = integers.iter().flat_map(|x| x.to_be_bytes()).collect();
    check(0x0c, Element::I32, bytes, &[-3.0, 70_000.0, 1.0, 2.0]);
    let floats = [-3.5f32, 1e9, 1.0, 2.0];
    check(
        0x0d,
        Element::F32,
        floats.iter().flat_map(|x| x.to_be_bytes()).collect(),
        &floats,
    );
    let doubles = [-3.5f64, 1e9, 1.0, 2.0];
    check(
        0x0e,
        Element::F64,
        doubles.iter().flat_map(|x| x.to_be_bytes()).collect(),
        &floats,
    );
}

#[test]
fn members_of_an_archive_stored_and_deflated() {
    let (n, len) = (50, 12);
    let x = npy("|u1", &[n, 3, 4], &pixels(n, len));
    let y = npy("<i4", &[n], &thirds(n));
    let plain = Folder::images(n, &[3, 4]);
    let expected = inputs(&plain.open("x.npy").unwrap());
    for deflated in [false, true] {
        let bytes = npz(&[("x", x.clone()), ("y", y.clone())], deflated);
        let folder = Folder::new(&[("data.npz", bytes)]);
        let mut source = folder.open("data.npz").unwrap();
        assert_eq!(source.is_packed(), deflated);
        if deflated {
            let keep = Keep {
                memory: 1 << 20,
                ..Keep::default()
            };
            source.keep(&keep, &Ledger::new(ROOMY)).unwrap();
        }
        assert_eq!(inputs(&source), expected, "deflated: {deflated}");
        assert_eq!(targets(&source)[..4], [0.0, 1.0, 2.0, 0.0]);
    }
}

#[test]
fn a_header_may_be_long() {
    let data = pixels(10, 4);
    let text = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': (10, 4), }}{}\n",
        " ".repeat(30_000)
    );
    let length = (text.len() as u32).to_le_bytes();
    let bytes = [b"\x93NUMPY\x02\x00", &length[..], text.as_bytes(), &data].concat();
    let folder = Folder::new(&[("x.npy", bytes)]);
    let source = folder.open_with("x.npy", &without_labels()).unwrap();
    let expected: Vec<f32> = data.iter().map(|byte| f32::from(*byte)).collect();
    assert_eq!(inputs(&source), expected);
    assert_eq!(source.n_samples_of(in_place().part), 10);
}
