//! The ledger under threads: never over, never stuck, always back to zero.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

mod lowered;

/// Runs `body` on a thread of its own and fails if it hangs.
fn within_seconds<T: Send + 'static>(seconds: u64, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        let result = body();
        let _ = done.send(());
        result
    });
    match finished.recv_timeout(Duration::from_secs(seconds)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs: not finished after {seconds} s"),
        // A panic of the body drops the channel; joining passes it on.
        _ => worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// Waits until `holders` requests wait in `ledger`.
fn until_waiting(ledger: &Ledger, names: &[&str]) {
    let start = Instant::now();
    while !names.iter().all(|name| {
        ledger
            .snapshot()
            .holders
            .iter()
            .any(|h| h.name == *name && h.waiting > 0)
    }) {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{names:?} never waited"
        );
        thread::yield_now();
    }
}

fn line(ledger: &Ledger, name: &str) -> HolderSnapshot {
    ledger
        .snapshot()
        .holders
        .into_iter()
        .find(|h| h.name == name)
        .expect("a known holder")
}

#[test]
fn grants_are_counted_by_holder_and_come_back() {
    let ledger = Ledger::new(100);
    let (a, b) = (ledger.holder("a"), ledger.holder("b"));
    let mut first = a.try_grant(40).expect("fits");
    let second = b.grant(50).expect("fits");
    first.try_grow(10).expect("fits");
    assert_eq!((ledger.used(), ledger.free(), ledger.peak()), (100, 0, 100));
    first.shrink(30);
    let part = first.split(15);
    assert_eq!((first.bytes(), part.bytes(), ledger.used()), (5, 15, 70));
    drop(first);
    first = part;
    first.resize(25).expect("fits");
    first.try_resize(1).expect("smaller always fits");
    drop((first, second));
    let (a, b) = (line(&ledger, "a"), line(&ledger, "b"));
    assert_eq!((a.held, a.peak, b.held, b.peak), (0, 50, 0, 50));
    assert_eq!((ledger.used(), ledger.peak()), (0, 100));
}

#[test]
fn a_refusal_says_who_holds_what() {
    let ledger = Ledger::new(2_000_000_000);
    let weights = ledger
        .holder("weights")
        .try_grant(1_500_000_000)
        .expect("fits")
        .pin();
    let block = ledger.holder("reader").try_grant(300_000_000).expect("fits");
    let prefetch = ledger.holder("prefetch");
    let text = |refused: Result<Grant, Refused>| refused.expect_err("refused").to_string();
    assert_eq!(
        text(prefetch.try_grant(256_000_000)),
        "prefetch needs 256 MB and 200 MB of 2 GB are free (weights 1.5 GB · reader 300 MB)"
    );
    assert_eq!(
        text(prefetch.grant(2_500_000_000)),
        "prefetch needs 2.5 GB and the budget is 2 GB"
    );
    assert_eq!(
        text(prefetch.grant(600_000_000)),
        "prefetch would wait for ever for 600 MB: 200 MB of 2 GB are free and the rest is held by those who \
         stay or wait too (weights 1.5 GB · reader 300 MB)"
    );
    let refused = prefetch.try_grant(256_000_000).expect_err("refused");
    assert_eq!(
        refused.hint().as_deref(),
        Some("a budget of 2.06 GB would have been enough here")
    );
    assert_eq!(refused.holder(), "prefetch");
    drop((weights, block));
    assert_eq!(ledger.used(), 0);
}

#[test]
fn the_reserve_is_for_its_holders() {
    let ledger = Ledger::with_reserve(100, 30);
    let (ordinary, checkpoint) = (ledger.holder("ordinary"), ledger.reserve_holder("checkpoint"));
    let all = ordinary.try_grant(70).expect("the ordinary part");
    assert!(matches!(
        ordinary.try_grant(1),
        Err(Refused::Exhausted { free: 0, .. })
    ));
    assert!(matches!(
        ordinary.grant(71),
        Err(Refused::TooLarge { budget: 70, .. })
    ));
    let last = checkpoint.grant(30).expect("the reserve");
    assert!(matches!(checkpoint.try_grant(1), Err(Refused::Exhausted { .. })));
    drop((all, last));
    // The reserve's holder may also take ordinary bytes; then there are fewer for the others.
    let much = checkpoint.grant(80).expect("more than the reserve");
    assert!(matches!(
        ordinary.try_grant(21),
        Err(Refused::Exhausted { free: 20, .. })
    ));
    drop(much);
    assert_eq!(ledger.used(), 0);
}

#[test]
fn an_ordinary_waiter_does_not_hold_up_the_reserve() {
    within_seconds(20, || {
        let ledger = Ledger::with_reserve(100, 30);
        let held = ledger.holder("held").try_grant(70).expect("fits");
        let waiter = thread::spawn({
            let ordinary = ledger.holder("ordinary");
            move || ordinary.grant(50).map(|grant| grant.bytes())
        });
        until_waiting(&ledger, &["ordinary"]);
        let checkpoint = ledger
            .reserve_holder("checkpoint")
            .grant(30)
            .expect("goes past the ordinary waiter");
        drop(held);
        assert_eq!(waiter.join().expect("no panic"), Ok(50));
        drop(checkpoint);
    });
}

#[test]
fn growers_go_before_fresh_requests_and_those_in_order() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let held = ledger.holder("held").try_grant(60).expect("fits");
        let mut growing = ledger.holder("grower").try_grant(40).expect("fits");
        let (log, order) = mpsc::channel();
        let fresh: Vec<_> = ["first", "second"]
            .into_iter()
            .map(|name| {
                let (holder, log) = (ledger.holder(name), log.clone());
                let handle = thread::spawn(move || {
                    let grant = holder.grant(60).expect("in turn");
                    log.send(name).expect("listening");
                    drop(grant);
                });
                until_waiting(&ledger, &[name]);
                handle
            })
            .collect();
        let grower = thread::spawn(move || {
            growing.grow(30).expect("before the fresh");
            log.send("grower").expect("listening");
            drop(growing);
        });
        until_waiting(&ledger, &["grower"]);
        // Free bytes are promised to those who wait: nobody slips in.
        assert!(matches!(
            ledger.holder("late").try_grant(1),
            Err(Refused::Exhausted { .. })
        ));
        drop(held);
        grower.join().expect("no panic");
        fresh
            .into_iter()
            .for_each(|handle| handle.join().expect("no panic"));
        assert_eq!(order.iter().collect::<Vec<_>>(), ["grower", "first", "second"]);
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn two_growers_that_need_each_other_do_not_hang() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let mut a = ledger.holder("a").try_grant(50).expect("fits");
        let mut b = ledger.holder("b").try_grant(50).expect("fits");
        let waiting = thread::spawn(move || {
            a.grow(20).expect("served when b gives back");
            a
        });
        until_waiting(&ledger, &["a"]);
        let refused = b.grow(20).expect_err("both would wait");
        let Refused::Deadlock { holder, held, .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!((holder.as_str(), held.len()), ("b", 2));
        drop(b);
        assert_eq!(waiting.join().expect("no panic").bytes(), 70);
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn a_grower_that_fits_frees_the_one_before_it() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let mut large = ledger.holder("large").try_grant(40).expect("fits");
        let mut small = ledger.holder("small").try_grant(40).expect("fits");
        let third = ledger.holder("third").try_grant(15).expect("fits");
        let large = thread::spawn(move || large.grow(50));
        until_waiting(&ledger, &["large"]);
        // Needs 10 where 5 are free; `third` gives back 15: enough for small, not for large.
        let small = thread::spawn(move || small.grow(10));
        until_waiting(&ledger, &["small"]);
        drop(third);
        assert_eq!(small.join().expect("no panic"), Ok(()));
        assert_eq!(large.join().expect("no panic"), Ok(()));
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn pinning_refuses_those_who_counted_on_it() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let held = ledger.holder("model").try_grant(60).expect("fits");
        let waiter = thread::spawn({
            let holder = ledger.holder("waiter");
            move || holder.grant(50)
        });
        let small = thread::spawn({
            let ledger = ledger.clone();
            move || {
                until_waiting(&ledger, &["waiter"]);
                ledger.holder("small").grant(40)
            }
        });
        until_waiting(&ledger, &["waiter", "small"]);
        let held = held.pin();
        assert!(held.is_pinned() && line(&ledger, "model").pinned == 60);
        let refused = waiter.join().expect("no panic").expect_err("never to be served");
        assert!(matches!(refused, Refused::Deadlock { .. }), "{refused}");
        assert_eq!(small.join().expect("no panic").expect("still fits").bytes(), 40);
        drop(held);
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn asking_for_a_second_grant_while_holding_the_first_does_not_hang() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let (reader, encoder) = (ledger.holder("reader"), ledger.holder("encoder"));
        let block = reader.try_grant(80).expect("fits");
        let refused = encoder
            .grant_holding(30, &[&block])
            .expect_err("only the asker could give back");
        assert!(
            matches!(refused, Refused::TooLarge { asked: 110, .. }),
            "{refused}"
        );
        let pinned = ledger.holder("model").try_grant(15).expect("fits").pin();
        let refused = encoder.grant_holding(10, &[&block]).expect_err("the model stays");
        assert!(matches!(refused, Refused::Deadlock { .. }), "{refused}");
        assert_eq!(encoder.grant_holding(5, &[&block]).expect("fits").bytes(), 5);
        drop((block, pinned));
    });
}

#[test]
fn a_pinned_grant_that_grows_strands_nobody() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let mut model = ledger.holder("model").try_grant(20).expect("fits").pin();
        let held = ledger.holder("held").try_grant(60).expect("fits");
        let waiter = thread::spawn({
            let holder = ledger.holder("waiter");
            move || holder.grant(75)
        });
        until_waiting(&ledger, &["waiter"]);
        assert!(matches!(model.try_grow(10), Err(Refused::Deadlock { .. })));
        // Ten more, for good, are only possible once the waiter has been served and is done.
        let model = thread::spawn(move || {
            model.grow(10).expect("after the waiter");
            model
        });
        until_waiting(&ledger, &["model"]);
        drop(held);
        let served = waiter.join().expect("no panic").expect("the waiter is served");
        assert_eq!(served.bytes(), 75);
        drop(served);
        assert_eq!(model.join().expect("no panic").bytes(), 30);
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn closing_wakes_everybody() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let held = ledger.holder("held").try_grant(100).expect("fits");
        let waiters: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                let holder = ledger.holder(name);
                thread::spawn(move || holder.grant(10).expect_err("closed"))
            })
            .into_iter()
            .collect();
        until_waiting(&ledger, &["a", "b", "c"]);
        ledger.close();
        for waiter in waiters {
            assert!(matches!(
                waiter.join().expect("no panic"),
                Refused::Closed { asked: 10, .. }
            ));
        }
        assert!(matches!(
            ledger.holder("late").try_grant(1),
            Err(Refused::Closed { .. })
        ));
        drop(held);
        assert_eq!(ledger.used(), 0);
    });
}

#[test]
fn zero_bytes_and_huge_numbers_are_no_special_case() {
    let ledger = Ledger::new(10);
    let holder = ledger.holder("a");
    let full = holder.try_grant(10).expect("fits");
    let mut empty = holder.grant(0).expect("nothing is always there");
    assert!(matches!(empty.try_grow(u64::MAX), Err(Refused::TooLarge { .. })));
    assert!(matches!(holder.grant(u64::MAX), Err(Refused::TooLarge { .. })));
    drop(full);
    empty.grow(10).expect("fits");
    assert!(matches!(empty.grow(u64::MAX), Err(Refused::TooLarge { .. })));
    empty.shrink(u64::MAX);
    assert_eq!((empty.bytes(), empty.split(5).bytes(), ledger.used()), (0, 0, 0));
    assert!(matches!(
        Ledger::new(0).holder("a").grant(1),
        Err(Refused::TooLarge { budget: 0, .. })
    ));
    assert_eq!(Ledger::with_reserve(10, 50).snapshot().reserve, 10);
}

/// One move of one thread of the property below.
#[derive(Debug, Clone)]
enum Move {
    Grant(u64),
    TryGrant(u64),
    Grow(u64),
    TryGrow(u64),
    Shrink(u64),
    Split(u64),
    GrantHolding(u64),
    Pin,
    Drop,
    Send,
}

fn moves() -> impl Strategy<Value = Vec<Vec<Move>>> {
    let one = prop_oneof![
        3 => (1u64..60).prop_map(Move::Grant),
        2 => (1u64..60).prop_map(Move::TryGrant),
        3 => (1u64..40).prop_map(Move::Grow),
        2 => (1u64..40).prop_map(Move::TryGrow),
        2 => (1u64..40).prop_map(Move::Shrink),
        1 => (1u64..40).prop_map(Move::Split),
        2 => (1u64..40).prop_map(Move::GrantHolding),
        1 => Just(Move::Pin),
        3 => Just(Move::Drop),
        1 => Just(Move::Send),
    ];
    prop::collection::vec(prop::collection::vec(one, 1..40), 2..9)
}

/// Plays all moves at once. Every thread keeps the one rule: it tells the ledger what it holds while it waits,
/// and lets go of what it cannot grow.
fn play(ledger: &Ledger, threads: Vec<Vec<Move>>) {
    let over = play_freely(ledger, threads);
    assert_eq!(over, 0, "more was granted than the budget");
}

/// Returns how often more was seen to be held than the budget was at that moment.
fn play_freely(ledger: &Ledger, threads: Vec<Vec<Move>>) -> usize {
    let model = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = threads
        .into_iter()
        .enumerate()
        .map(|(index, moves)| {
            let name = format!("holder {index}");
            let holder = if index == 0 {
                ledger.reserve_holder(&name)
            } else {
                ledger.holder(&name)
            };
            let (ledger, model, over) = (ledger.clone(), model.clone(), over.clone());
            thread::spawn(move || {
                // Our own count, raised after a grant and lowered before it goes, is never above the ledger's.
                let gained = |bytes: u64| {
                    if model.fetch_add(bytes, SeqCst) + bytes > ledger.budget() {
                        over.fetch_add(1, SeqCst);
                    }
                };
                let lost = |bytes: u64| {
                    model.fetch_sub(bytes, SeqCst);
                };
                let mut held: Option<Grant> = None;
                for step in moves {
                    match (step, held.take()) {
                        (Move::Grant(bytes), None) => held = holder.grant(bytes).ok(),
                        (Move::TryGrant(bytes), None) => held = holder.try_grant(bytes).ok(),
                        (Move::Grow(bytes), Some(mut grant)) => match grant.grow(bytes) {
                            Ok(()) => {
                                gained(bytes);
                                held = Some(grant);
                                continue;
                            }
                            Err(_) => lost(grant.bytes()),
                        },
                        (Move::TryGrow(bytes), Some(mut grant)) => {
                            if grant.try_grow(bytes).is_ok() {
                                gained(bytes);
                            }
                            held = Some(grant);
                            continue;
                        }
                        (Move::Shrink(bytes), Some(mut grant)) => {
                            lost(bytes.min(grant.bytes()));
                            grant.shrink(bytes);
                            held = Some(grant);
                            continue;
                        }
                        (Move::Split(bytes), Some(mut grant)) => {
                            let part = grant.split(bytes);
                            lost(part.bytes());
                            held = Some(grant);
                            continue;
                        }
                        (Move::GrantHolding(bytes), Some(grant)) => {
                            if let Ok(second) = holder.grant_holding(bytes, &[&grant]) {
                                gained(second.bytes());
                                lost(second.bytes());
                            }
                            held = Some(grant);
                            continue;
                        }
                        (Move::Pin, Some(grant)) => {
                            held = Some(grant.pin());
                            continue;
                        }
                        (Move::Drop, Some(grant)) => lost(grant.bytes()),
                        (Move::Send, Some(grant)) => {
                            lost(grant.bytes());
                            thread::spawn(move || drop(grant)).join().expect("no panic");
                        }
                        (_, kept) => {
                            held = kept;
                            continue;
                        }
                    }
                    if let Some(grant) = &held {
                        gained(grant.bytes());
                    }
                }
                if let Some(grant) = held {
                    lost(grant.bytes());
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().expect("no thread panics");
    }
    over.load(SeqCst)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_over_never_stuck_back_to_zero(threads in moves(), reserve in 0u64..60) {
        let ledger = Ledger::with_reserve(100, reserve);
        within_seconds(30, {
            let ledger = ledger.clone();
            move || play(&ledger, threads)
        });
        let snapshot = ledger.snapshot();
        prop_assert_eq!(snapshot.used, 0);
        prop_assert!(snapshot.peak <= 100);
        let top = snapshot.holders.iter().map(|h| h.peak).max().unwrap_or(0);
        let sum: u64 = snapshot.holders.iter().map(|h| h.peak).sum();
        prop_assert!(top <= snapshot.peak && snapshot.peak <= sum);
        for (index, holder) in snapshot.holders.iter().enumerate() {
            prop_assert_eq!((holder.held, holder.pinned, holder.waiting), (0, 0, 0));
            let ceiling = if index == 0 { 100 } else { 100 - reserve };
            prop_assert!(holder.peak <= ceiling);
        }
    }

    #[test]
    fn peaks_are_those_of_a_plain_count(steps in prop::collection::vec((0usize..3, 1u64..50, any::<bool>()), 1..60)) {
        let ledger = Ledger::new(100);
        let holders = ["a", "b", "c"].map(|name| ledger.holder(name));
        let mut grants: [Vec<Grant>; 3] = Default::default();
        let (mut held, mut peaks, mut peak) = ([0u64; 3], [0u64; 3], 0);
        for (index, bytes, release) in steps {
            if release {
                if let Some(grant) = grants[index].pop() {
                    held[index] -= grant.bytes();
                }
            } else if held.iter().sum::<u64>() + bytes <= 100 {
                grants[index].push(holders[index].try_grant(bytes).expect("fits"));
                held[index] += bytes;
                peaks[index] = peaks[index].max(held[index]);
                peak = peak.max(held.iter().sum());
            } else {
                prop_assert!(holders[index].try_grant(bytes).is_err());
            }
            let snapshot = ledger.snapshot();
            let told: Vec<(u64, u64)> = snapshot.holders.iter().map(|h| (h.held, h.peak)).collect();
            let counted: Vec<(u64, u64)> = held.into_iter().zip(peaks).collect();
            prop_assert_eq!((told, snapshot.peak), (counted, peak));
            prop_assert_eq!(snapshot.holders.iter().map(|h| h.at_peak).sum::<u64>(), peak);
            prop_assert!(snapshot.holders.iter().all(|h| h.at_peak <= h.peak));
        }
    }
}

/// Readers ahead of a slow consumer, through a queue, on a budget of a few pieces: all pieces arrive, the line
/// holds.
#[test]
fn a_pipeline_flows_through_a_small_budget() {
    within_seconds(60, || {
        let ledger = Ledger::new(1_000);
        let (queue, pieces) = mpsc::channel::<(Grant, Grant)>();
        let readers: Vec<_> = (0..4)
            .map(|index| {
                let (holder, queue) = (ledger.holder("reader"), queue.clone());
                thread::spawn(move || {
                    for piece in 0..500u64 {
                        // All that the piece needs on its way, asked for once.
                        let mut block = holder
                            .grant(100 + (index * 37 + piece * 13) % 200)
                            .expect("in turn");
                        let matrix = block.split(50);
                        queue.send((block, matrix)).expect("the consumer lives");
                    }
                })
            })
            .collect();
        drop(queue);
        let mut arrived = 0;
        for (block, matrix) in pieces {
            drop(block);
            assert_eq!(matrix.bytes(), 50);
            arrived += 1;
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().expect("no panic"));
        assert_eq!((arrived, ledger.used()), (2_000, 0));
        assert!(ledger.peak() <= 1_000);
    });
}
