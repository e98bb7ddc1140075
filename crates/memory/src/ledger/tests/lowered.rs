//! A budget that is lowered while it is in use.

use std::thread;

use proptest::prelude::*;

use super::{line, moves, play_freely, until_waiting, within_seconds};
use crate::{Grant, Ledger, Refused};

#[test]
fn a_lowered_budget_grants_nothing_above_it_and_takes_nothing_away() {
    let ledger = Ledger::with_reserve(100, 30);
    let holder = ledger.holder("a");
    let mut held = holder.try_grant(60).expect("fits");
    ledger.lower(200);
    assert_eq!((ledger.budget(), ledger.over()), (100, 0));
    ledger.lower(50);
    // Of 50 bytes, 30 are for the reserve: ordinary holders have 40 too many.
    assert_eq!((ledger.budget(), ledger.over(), ledger.free()), (50, 40, 0));
    assert_eq!((held.bytes(), ledger.peak()), (60, 60));
    assert!(matches!(
        held.try_grow(1),
        Err(Refused::TooLarge {
            asked: 61,
            budget: 20,
            ..
        })
    ));
    assert!(matches!(
        holder.try_grant(1),
        Err(Refused::Exhausted { free: 0, .. })
    ));
    held.shrink(45);
    assert_eq!((ledger.over(), ledger.free()), (0, 35));
    assert!(holder.try_grant(6).is_err() && holder.try_grant(5).is_ok());
    ledger.lower(10);
    assert_eq!((ledger.over(), ledger.snapshot().reserve), (15, 10));
    drop(held);
    assert_eq!((ledger.over(), ledger.used(), ledger.free()), (0, 0, 10));
}

#[test]
fn what_could_be_done_without_is_told_until_it_is_gone() {
    let ledger = Ledger::new(100);
    let mut ahead = ledger.spare(40);
    let cache = ledger.spare(30);
    assert_eq!(ledger.spare_bytes(), 70);
    ahead.tell(10);
    assert_eq!((ledger.spare_bytes(), ledger.used()), (40, 0));
    drop((ahead, cache));
    assert_eq!(ledger.spare_bytes(), 0);
}

#[test]
fn lowering_answers_those_who_can_never_be_served() {
    within_seconds(20, || {
        let ledger = Ledger::new(100);
        let held = ledger.holder("held").try_grant(80).expect("fits");
        let ask = |name: &'static str, bytes: u64| {
            let holder = ledger.holder(name);
            let waiter = thread::spawn(move || holder.grant(bytes));
            until_waiting(&ledger, &[name]);
            waiter
        };
        let (large, small) = (ask("large", 70), ask("small", 40));
        ledger.lower(50);
        let refused = large.join().expect("no panic").expect_err("never to be served");
        assert!(
            matches!(
                refused,
                Refused::Deadlock {
                    asked: 70,
                    budget: 50,
                    ..
                }
            ),
            "{refused}"
        );
        // What is held is too much now, but comes back: who fits then goes on waiting for it.
        assert_eq!(line(&ledger, "small").waiting, 40);
        drop(held);
        assert_eq!(small.join().expect("no panic").expect("served").bytes(), 40);
        assert_eq!((ledger.used(), ledger.over()), (0, 0));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lowered_at_any_time_it_is_never_over_never_stuck(
        threads in moves(),
        reserve in 0u64..60,
        lower in prop::collection::vec(0u64..100, 1..4),
    ) {
        let ledger = Ledger::with_reserve(100, reserve);
        let last = lower.iter().copied().min().unwrap_or(100);
        within_seconds(30, {
            let ledger = ledger.clone();
            move || {
                let lowering = thread::spawn({
                    let ledger = ledger.clone();
                    move || lower.into_iter().for_each(|budget| {
                        thread::yield_now();
                        let before = ledger.used();
                        ledger.lower(budget);
                        // What is granted stays; less than that is only what came back meanwhile.
                        assert!(ledger.budget() <= budget && ledger.over() <= before.max(100));
                    })
                });
                // A budget that moves is no measure of what was granted before: only that all ends, and comes back.
                play_freely(&ledger, threads);
                lowering.join().expect("no panic");
            }
        });
        let snapshot = ledger.snapshot();
        prop_assert_eq!((snapshot.used, ledger.over(), snapshot.budget), (0, 0, last));
        prop_assert!(snapshot.holders.iter().all(|h| (h.held, h.pinned, h.waiting) == (0, 0, 0)));
        prop_assert!(ledger.holder("late").try_grant(last + 1).is_err());
    }

    #[test]
    fn nothing_is_granted_above_a_lowered_budget(
        steps in prop::collection::vec((0usize..4, 1u64..60), 1..80),
    ) {
        let ledger = Ledger::new(100);
        let holder = ledger.holder("a");
        let mut grants: Vec<Grant> = Vec::new();
        for (kind, bytes) in steps {
            let (before, budget) = (ledger.used(), ledger.budget());
            match kind {
                0 => ledger.lower(budget.saturating_sub(bytes / 8)),
                1 => drop(grants.pop()),
                2 => {
                    let granted = holder.try_grant(bytes).ok();
                    prop_assert_eq!(granted.is_some(), before + bytes <= budget);
                    grants.extend(granted);
                }
                // Nobody else is there to give back, so who would have to wait is refused.
                _ => if let Some(mut grant) = grants.pop() {
                    let pinned = grants.iter().map(Grant::bytes).sum::<u64>();
                    let others: Vec<Grant> = grants.drain(..).map(Grant::pin).collect();
                    let grown = grant.grow(bytes).is_ok();
                    prop_assert_eq!(grown, pinned + grant.bytes() + if grown { 0 } else { bytes } <= budget);
                    grants.extend(others);
                    grants.push(grant);
                },
            }
            prop_assert_eq!(ledger.over(), ledger.used().saturating_sub(ledger.budget()));
            prop_assert!(ledger.used() <= before || ledger.used() <= ledger.budget());
        }
    }
}
