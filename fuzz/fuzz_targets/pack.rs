//! Reading a pack whose files were damaged: cut off, or changed at some places. What is read is what was written.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tidegate_data::pack::Part;
use tidegate_data::{BinsPack, BinsWriter, PackKey, PackOptions, PackStore};
use tidegate_memory::Ledger;

const FILES: [&str; 3] = ["data.arrow", "index", "manifest.json"];
const FEATURES: usize = 3;
const ROWS: usize = 50;

/// For some files, by number: the byte to change and what it becomes; or where the file ends from now on.
type Damage = Vec<(u8, u16, Option<u8>)>;

fuzz_target!(|damage: Damage| {
    let folder = tempfile::tempdir().unwrap();
    let (store, key) = (PackStore::at(folder.path()), PackKey::of(&[b"table"]));
    let ledger = Ledger::new(16 << 20);
    let holder = ledger.holder("pack");
    let options = PackOptions {
        store: store.clone(),
        key,
        description: "a table".into(),
        n_rows: 2 * ROWS as u64,
    };
    let bins: Vec<u8> = (0..ROWS * FEATURES).map(|i| i as u8).collect();
    let mut writer = BinsWriter::create(&options, FEATURES, &holder).unwrap();
    for _ in 0..2 {
        writer.push_block(&bins, &[1.5; ROWS], &[1; ROWS]).unwrap();
    }
    drop(writer.finish().unwrap());
    for (file, at, byte) in damage {
        let path = store.folder(key).join(FILES[usize::from(file) % FILES.len()]);
        let mut bytes = fs::read(&path).unwrap();
        let at = usize::from(at) % (bytes.len() + 1);
        match byte {
            Some(byte) if at < bytes.len() => bytes[at] = byte,
            _ => bytes.truncate(at),
        }
        fs::write(&path, bytes).unwrap();
    }
    let _ = store.list();
    if let Ok(Some(pack)) = BinsPack::open(&store, key, FEATURES, &holder) {
        for block in 0..pack.n_blocks() {
            let n_rows = pack.n_rows(block);
            let mut read = (vec![0; n_rows * FEATURES], vec![0.0; n_rows], vec![0; n_rows]);
            for part in [Part::Whole, Part::Bins, Part::Labels] {
                let done = pack.read_block(block, part, &mut read.0, &mut read.1, &mut read.2);
                assert!(
                    done.is_err() || read.0 == bins,
                    "a damaged block was taken for a whole one"
                );
            }
        }
    }
    assert_eq!(ledger.used(), 0);
});
