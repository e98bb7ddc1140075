//! What Tidegate does to an allocator, without the arithmetic.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;

/// A small generator, the same in every process.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A text block of 1 MiB on its way to a matrix of 200 KB to 4 MB.
type Text = (usize, Vec<u8>);
type Matrix = (usize, Vec<f32>);

/// Pieces between reading and consuming, as the ledger would bound them.
const ON_THE_WAY: usize = 16;

/// Two threads make text blocks, two turn them into matrices, and the matrices are consumed in order. Every
/// buffer is freed by another thread than the one that made it.
pub fn blocks(count: usize) {
    let (texts, to_parse): (SyncSender<Text>, Receiver<Text>) = mpsc::sync_channel(4);
    let (matrices, to_train): (SyncSender<Matrix>, Receiver<Matrix>) = mpsc::sync_channel(4);
    let to_parse = Arc::new(Mutex::new(to_parse));
    let (returned, permits) = mpsc::channel();
    (0..ON_THE_WAY).for_each(|_| returned.send(()).expect("permits are listened to"));
    let next = Arc::new(Mutex::new((0, permits)));
    thread::scope(|scope| {
        for _ in 0..2 {
            let (texts, next) = (texts.clone(), next.clone());
            scope.spawn(move || {
                loop {
                    let index = {
                        let mut next = next.lock().expect("no panic");
                        if next.0 == count || next.1.recv().is_err() {
                            return;
                        }
                        next.0 += 1;
                        next.0 - 1
                    };
                    if texts.send((index, vec![index as u8; 1 << 20])).is_err() {
                        return;
                    }
                }
            });
        }
        for _ in 0..2 {
            let (to_parse, matrices) = (to_parse.clone(), matrices.clone());
            scope.spawn(move || {
                loop {
                    let received = to_parse.lock().expect("no panic").recv();
                    let Ok((index, text)) = received else { return };
                    let mut random = Random(index as u64 * 7_919 + 1);
                    let cells = 50_000 + random.below(950_000) as usize;
                    // Row ends are collected in a vector that grows, as a parser's are.
                    let ends: Vec<u32> = (0..text.len() as u32).step_by(80).collect();
                    let mut matrix = Vec::with_capacity(cells);
                    matrix.resize(cells, ends.len() as f32);
                    if matrices.send((index, matrix)).is_err() {
                        return;
                    }
                }
            });
        }
        drop((texts, matrices));
        let mut early = BTreeMap::new();
        let mut expected = 0;
        for (index, matrix) in to_train {
            early.insert(index, matrix);
            while let Some(matrix) = early.remove(&expected) {
                black_box(&matrix);
                expected += 1;
                // The readers are gone near the end.
                let _ = returned.send(());
            }
        }
    });
}

/// The state of fitting categories: four threads count their own into maps that grow, keep the frequent ones
/// and drop the others, then merge.
pub fn categories() {
    struct State {
        count: u64,
        targets: Vec<f64>,
    }
    let maps: Vec<HashMap<String, State>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Random(thread * 104_729 + 1);
                    let mut map: HashMap<String, State> = HashMap::new();
                    for _ in 0..1_500_000 {
                        // Two draws multiplied: few names are frequent, most are rare.
                        let name = random.below(2_000) * random.below(2_000) / 8;
                        let state = map.entry(format!("category {name}")).or_insert_with(|| State {
                            count: 0,
                            targets: Vec::new(),
                        });
                        state.count += 1;
                        if state.targets.len() < 32 {
                            state.targets.push(name as f64);
                        }
                        if map.len() > 150_000 {
                            map.retain(|_, state| state.count > 2);
                        }
                    }
                    map
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let mut merged: HashMap<String, State> = HashMap::new();
    for map in maps {
        for (name, state) in map {
            let all = merged.entry(name).or_insert_with(|| State {
                count: 0,
                targets: Vec::new(),
            });
            all.count += state.count;
            all.targets.extend(state.targets);
        }
    }
    black_box(
        merged
            .values()
            .map(|state| state.count + state.targets.len() as u64)
            .sum::<u64>(),
    );
}

/// A burst of 400 MB in pieces of many sizes made by four threads and freed by another, then a steady stream
/// of blocks. What is resident afterwards is what the allocator kept.
pub fn burst() {
    let pieces: Vec<Vec<Vec<u8>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Random(thread * 15_485_863 + 1);
                    let mut left = 100_000_000u64;
                    let mut pieces = Vec::new();
                    while left > 0 {
                        let size = match random.below(100) {
                            0 => 100_000 + random.below(1_900_000),
                            1..10 => 4_096 + random.below(60_000),
                            _ => 16 + random.below(2_000),
                        };
                        pieces.push(vec![1u8; size.min(left) as usize]);
                        left -= size.min(left);
                    }
                    pieces
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    drop(black_box(pieces));
    blocks(300);
}
