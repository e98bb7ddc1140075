//! Packs: listed, pruned, and what was freed.

use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use tidegate_data::{BinsWriter, PackKey, PackOptions, PackStore};
use tidegate_memory::Ledger;

use crate::help::Place;

/// Makes a pack of so many rows that was last used so many days ago.
fn pack(place: &Place, name: &str, n_rows: usize, days: u64) -> PackKey {
    let key = PackKey::of(&[name.as_bytes()]);
    let store = PackStore::at(place.home.join("packs"));
    let options = PackOptions {
        store: store.clone(),
        key,
        description: format!("{name}.csv, 4 columns, target y"),
        n_rows: n_rows as u64,
    };
    let ledger = Ledger::new(1 << 24);
    let mut writer = BinsWriter::create(&options, 4, &ledger.holder("pack")).unwrap();
    writer
        .push_block(&vec![1; 4 * n_rows], &vec![0.5; n_rows], &vec![0; n_rows])
        .unwrap();
    writer.finish().unwrap();
    let used = SystemTime::now() - Duration::from_secs(days * 86_400);
    let manifest = std::fs::File::options()
        .append(true)
        .open(store.folder(key).join("manifest.json"));
    manifest.unwrap().set_modified(used).unwrap();
    key
}

#[test]
fn packs_are_listed_the_last_used_first() {
    let place = Place::new();
    assert!(place.ok("packs").stdout.starts_with("no packs in "));
    pack(&place, "old", 1_000, 40);
    pack(&place, "new", 60_000, 0);
    let said = place.ok("packs");
    assert_snapshot!(said, @r"
    exit 0
    --- stdout
    PACK  SIZE  ROWS  LAYOUT  MADE  LAST USED  FROM
    f338599694ec3198  [size]  60,000  4 features in bins  just now  just now  new.csv, 4 columns, target y
    0c02c8444ba47d86  [size]  1,000  4 features in bins  just now  40 days ago  old.csv, 4 columns, target y
    2 packs in [dir]/home/packs: [size]
    ");
    let listed = place.json("packs");
    assert_eq!(listed["packs"][1]["contents"]["rows"].as_u64(), Some(1_000));
    assert_eq!(
        listed["packs"][0]["contents"]["layout"]["bins"]["features"].as_u64(),
        Some(4)
    );
}

#[test]
fn pruning_says_what_was_freed() {
    let place = Place::new();
    assert_eq!(
        place.ok("packs --prune").stdout,
        "nothing to remove: none is torn; say --keep SIZE, --older-than DAYS or --all\n"
    );
    for (name, days) in [("a", 40), ("b", 20), ("c", 0)] {
        pack(&place, name, 10_000, days);
    }
    let whole = place.json("packs")["bytes"].as_u64().unwrap();
    let left = |pruned: &serde_json::Value| pruned["left"]["packs"].as_array().unwrap().len();
    let pruned = place.json("packs --prune --older-than 30");
    assert_eq!(
        (left(&pruned), pruned["freed_bytes"].as_u64()),
        (2, Some(whole / 3))
    );
    let said = place.ok("packs --prune --keep 100KB").stdout;
    assert!(
        said.contains("removed 1 pack: ") && said.contains("1 pack left: "),
        "{said}"
    );
    let torn = pack(&place, "torn", 10, 0);
    std::fs::write(
        place.home.join("packs").join(torn.to_string()).join("data.arrow"),
        "",
    )
    .unwrap();
    assert!(place.ok("packs").stdout.contains("torn"));
    assert_eq!(left(&place.json("packs --prune")), 1);
    assert_eq!(left(&place.json("packs --prune --all")), 0);
    assert!(place.ok("packs").stdout.starts_with("no packs in "));
}

#[test]
fn what_is_to_go_is_said_clearly() {
    let place = Place::new();
    for arguments in [
        "packs --all",
        "packs --keep 1GB",
        "packs --prune --keep 10%",
        "packs --prune --older-than -1",
    ] {
        assert_eq!(place.run(arguments).code, Some(2), "{arguments}");
    }
}
