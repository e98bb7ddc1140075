//! The folder of packs: found by key, listed, pruned, swept.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use tidegate_data::pack::{Layout, PackInfo, Part, Prune};
use tidegate_data::{BinsPack, PackKey, PackStore};
use tidegate_memory::Ledger;

use crate::help::{Scratch, options, write_bins};

fn numbered(n: u8) -> PackKey {
    PackKey::of(&[&[n]])
}

/// Packs of 1,000 rows, number `i` last used `i` hours ago.
fn filled(n_packs: u8) -> (Scratch, PackStore) {
    let scratch = Scratch::numbers(2);
    let store = scratch.store();
    let holder = Ledger::new(8 << 20).holder("pack");
    for i in 0..n_packs {
        write_bins(
            &options(store.clone(), numbered(i), 1_000),
            4,
            &[600, 400],
            &holder,
        );
        let used = SystemTime::now() - Duration::from_secs(3600 * u64::from(i) + 60);
        let manifest = store.folder(numbered(i)).join("manifest.json");
        File::options()
            .append(true)
            .open(manifest)
            .unwrap()
            .set_modified(used)
            .unwrap();
    }
    (scratch, store)
}

fn keys(packs: &[PackInfo]) -> Vec<PackKey> {
    packs.iter().map(|pack| pack.key).collect()
}

#[test]
fn keys_tell_parts_and_their_order_apart() {
    let same = PackKey::of(&[b"data", b"encoders"]);
    assert_eq!(same, PackKey::of(&[b"data", b"encoders"]));
    assert_eq!(same.to_string().parse(), Ok(same));
    let others: [&[&[u8]]; 6] = [
        &[],
        &[b"data"],
        &[b"encoders", b"data"],
        &[b"dataencoders"],
        &[b"data", b"encoders", b""],
        &[b"dat", b"aencoders"],
    ];
    for other in others {
        assert_ne!(same, PackKey::of(other), "{other:?}");
    }
}

#[test]
fn packs_are_listed_by_their_last_use() {
    let (_scratch, store) = filled(3);
    let packs = store.list().unwrap();
    assert_eq!(keys(&packs), [numbered(0), numbered(1), numbered(2)]);
    let pack = &packs[0];
    let contents = pack.contents.as_ref().unwrap();
    assert_eq!(contents.layout, Layout::Bins { features: 4 });
    assert_eq!(
        (contents.n_rows, contents.description.as_str()),
        (1_000, "table.csv, 4 columns, target y")
    );
    assert!(contents.created.elapsed().unwrap() < Duration::from_secs(600));
    assert!(pack.bytes > 9_000 && pack.bytes < 12_000, "{}", pack.bytes);
    let holder = Ledger::new(8 << 20).holder("pack");
    BinsPack::open(&store, numbered(2), 4, &holder).unwrap().unwrap();
    assert_eq!(
        store.list().unwrap()[0].key,
        numbered(2),
        "opening a pack is using it"
    );
}

#[test]
fn a_store_without_packs_is_empty() {
    let store = PackStore::at("/no/such/place");
    assert!(store.list().unwrap().is_empty());
    assert!(!store.remove(numbered(1)).unwrap());
    assert!(store.prune(&Prune::default()).unwrap().is_empty());
}

#[test]
fn removing_and_pruning() {
    let (_scratch, store) = filled(5);
    let bytes = store.list().unwrap()[0].bytes;
    assert!(store.remove(numbered(0)).unwrap());
    assert!(!store.remove(numbered(0)).unwrap());
    fs::write(store.folder(numbered(1)).join("manifest.json"), "{").unwrap();
    assert!(store.list().unwrap().iter().any(|pack| pack.contents.is_none()));
    let gone = store.prune(&Prune::default()).unwrap();
    assert_eq!(keys(&gone), [numbered(1)], "torn packs always go");
    let old = Prune {
        older_than: Some(Duration::from_secs(3 * 3600 + 1800)),
        ..Prune::default()
    };
    assert_eq!(keys(&store.prune(&old).unwrap()), [numbered(4)]);
    let large = Prune {
        keep_bytes: Some(bytes),
        ..Prune::default()
    };
    assert_eq!(keys(&store.prune(&large).unwrap()), [numbered(3)]);
    assert_eq!(keys(&store.list().unwrap()), [numbered(2)]);
}

#[test]
fn what_was_used_before_a_pack_that_does_not_fit_goes_with_it() {
    let (_scratch, store) = filled(3);
    let small = store.list().unwrap()[0].bytes;
    // The one used second last is larger than the others.
    let large = store.folder(numbered(1)).join("index");
    let grown = File::options().append(true).open(&large).unwrap();
    grown
        .set_len(fs::metadata(&large).unwrap().len() + small)
        .unwrap();
    let keep = |bytes| Prune {
        keep_bytes: Some(bytes),
        ..Prune::default()
    };
    let gone = store.prune(&keep(2 * small + small / 2)).unwrap();
    assert_eq!(keys(&gone), [numbered(1), numbered(2)]);
    assert_eq!(keys(&store.list().unwrap()), [numbered(0)]);
    assert_eq!(keys(&store.prune(&keep(small - 1)).unwrap()), [numbered(0)]);
}

#[test]
fn leftovers_of_dead_builders_are_swept() {
    let (_scratch, store) = filled(1);
    // No process has a number as high as this: `PID_MAX_LIMIT` is 2^22.
    let dead = store.path().join(format!("{}.new-99999999-0", numbered(7)));
    let alive = store
        .path()
        .join(format!("{}.new-{}-77", numbered(7), std::process::id()));
    let elsewhere = store.path().join(format!("{}.new-99999998-0", numbered(7)));
    let foreign = store.path().join("notes.new-99999999-0");
    for folder in [&dead, &alive, &elsewhere, &foreign] {
        fs::create_dir(folder).unwrap();
    }
    // A builder whose number means nothing here holds its lock.
    let data = File::create(elsewhere.join("data.arrow")).unwrap();
    data.lock().unwrap();
    assert_eq!(store.sweep().unwrap(), 1);
    assert!(!dead.exists() && alive.exists() && elsewhere.exists() && foreign.exists());
    drop(data);
    assert_eq!(store.sweep().unwrap(), 1);
    assert!(!elsewhere.exists());
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_pack_that_is_removed_can_be_read_to_its_end() {
    let (_scratch, store) = filled(1);
    let holder = Ledger::new(8 << 20).holder("pack");
    let pack = BinsPack::open(&store, numbered(0), 4, &holder).unwrap().unwrap();
    store.remove(numbered(0)).unwrap();
    let (mut bins, mut target, mut held_out) = ([0; 2_400], [0.0; 600], [0; 600]);
    pack.read_block(0, Part::Whole, &mut bins, &mut target, &mut held_out)
        .unwrap();
    pack.read_block(1, Part::Whole, &mut bins, &mut target, &mut held_out)
        .unwrap();
}
