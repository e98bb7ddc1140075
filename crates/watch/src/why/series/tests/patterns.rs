//! Shapes of memory, each from hundreds of seeds: a leak is found, and nothing else is called one.

use std::collections::BTreeMap;

use super::made::{Random, Setting, recorded, teeth};
use super::pattern;
use crate::why::{Case, PatternKind};

use PatternKind::{Burst, Leak, Plateau, Sawtooth, Steady};

const SEEDS: u64 = 200;

type Made = fn(&mut Random) -> Case;

/// A shape, the kinds that it may be called, the least share of seeds in which it is, and how it is made.
type Shape<'a> = (&'a str, &'a [PatternKind], f64, Made);

fn check(shapes: &[Shape<'_>]) {
    let mut complaints = Vec::new();
    for (name, expected, least, made) in shapes {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        let mut wrong = Vec::new();
        for seed in 0..SEEDS {
            let pattern = pattern(&made(&mut Random::new(seed))).expect("seconds have a shape");
            *found.entry(pattern.kind.as_str()).or_default() += 1;
            if !expected.contains(&pattern.kind) {
                wrong.push(format!(
                    "seed {seed}: {}: {}",
                    pattern.kind.as_str(),
                    pattern.sentence
                ));
            }
        }
        let share = 1.0 - wrong.len() as f64 / SEEDS as f64;
        println!("{name:36} {:6.2}% {found:?}", share * 100.0);
        // A false leak costs a person an afternoon: there is none.
        if share < *least || !expected.contains(&Leak) && found.contains_key("leak") {
            wrong.sort_by_key(|text| !text.contains(": leak:"));
            wrong.truncate(5);
            complaints.push(format!("{name}: {found:?}\n  {}", wrong.join("\n  ")));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Noise that would drown the growth is no test of it.
fn setting(random: &mut Random, growth: f64) -> Setting {
    let mut setting = Setting::drawn(random);
    setting.noise = setting.noise.min(growth * 0.04);
    setting
}

/// A short run that grows as fast as the machine can fill memory is a load, and no test of a leak.
fn leaking(random: &mut Random, growth: f64) -> Setting {
    let mut setting = setting(random, growth);
    if setting.seconds < 15.0 {
        setting.base = setting.base.min(100e6 * setting.seconds / growth);
    }
    setting
}

#[test]
fn a_leak_is_found() {
    check(&[
        ("even", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            recorded(&leaking(random, growth), random, |x| 1.0 + growth * x)
        }),
        ("in steps", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let n = random.magnitude(12.0, 2_000.0);
            let phase = random.between(0.0, 1.0);
            recorded(&leaking(random, growth), random, |x| {
                1.0 + growth * (x * n + phase).floor() / n
            })
        }),
        ("after loading", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let loaded = random.between(0.01, 0.25);
            recorded(&leaking(random, growth), random, |x| {
                (x / loaded).clamp(0.05, 1.0) + growth * (x - loaded).max(0.0)
            })
        }),
        ("below epochs", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let mut setting = leaking(random, growth);
            setting.seconds = setting.seconds.max(10.0);
            let n = random.magnitude(10.0, 200.0f64.min(setting.looks() / 8.0));
            let height = random.between(0.1, 1.0);
            let phase = random.between(0.0, 1.0);
            recorded(&setting, random, |x| {
                1.0 + growth * x + height * teeth(x, n, phase)
            })
        }),
        ("ever faster", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.4, 8.0);
            let power = random.between(1.0, 1.7);
            recorded(&leaking(random, growth), random, |x| 1.0 + growth * x.powf(power))
        }),
        ("begun late", &[Leak], 0.98, |random| {
            let growth = random.magnitude(0.4, 8.0);
            let begin = random.between(0.1, 0.45);
            let mut setting = leaking(random, growth);
            setting.seconds = setting.seconds.max(5.0);
            recorded(&setting, random, |x| 1.0 + growth * (x - begin).max(0.0))
        }),
        ("with pauses", &[Leak], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let n = random.count(10, 60) as f64;
            let pause = random.between(0.1, 0.5);
            recorded(&leaking(random, growth), random, |x| {
                1.0 + growth * ((x * n).floor() + ((x * n).fract() / (1.0 - pause)).min(1.0)) / n
            })
        }),
        ("few epochs", &[Leak], 0.95, |random| {
            let growth = random.magnitude(0.5, 8.0);
            let n = random.between(7.1, 10.0);
            let height = random.between(0.2, 1.0);
            recorded(&leaking(random, growth), random, |x| {
                1.0 + growth * x + growth * height * teeth(x, n, 0.0)
            })
        }),
    ]);
}

#[test]
fn what_stays_is_no_leak() {
    check(&[
        ("flat", &[Steady], 0.99, |random| {
            recorded(&Setting::drawn(random), random, |_| 1.0)
        }),
        ("noise", &[Steady, Sawtooth], 0.99, |random| {
            let mut setting = Setting::drawn(random);
            setting.noise = random.between(0.02, 0.15);
            recorded(&setting, random, |_| 1.0)
        }),
        (
            "slow waves",
            &[Steady, Sawtooth, Burst, Plateau],
            0.99,
            |random| {
                let waves: Vec<(f64, f64, f64)> = (0..4)
                    .map(|_| {
                        (
                            random.between(1.5, 20.0),
                            random.between(0.0, 6.3),
                            random.between(0.0, 0.1),
                        )
                    })
                    .collect();
                recorded(&Setting::drawn(random), random, |x| {
                    1.0 + waves
                        .iter()
                        .map(|(n, phase, height)| height * (x * n * 6.3 + phase).sin())
                        .sum::<f64>()
                })
            },
        ),
        (
            "a cache that fills and stays",
            &[Plateau, Burst, Steady],
            0.99,
            |random| {
                let growth = random.magnitude(0.3, 8.0);
                let full = random.between(0.05, 0.8);
                recorded(&setting(random, growth), random, |x| {
                    1.0 + growth * (x / full).min(1.0)
                })
            },
        ),
        (
            "a cache that fills ever more slowly",
            &[Plateau, Burst, Steady],
            0.99,
            |random| {
                let growth = random.magnitude(0.3, 8.0);
                let speed = random.between(2.0, 20.0);
                recorded(&setting(random, growth), random, |x| {
                    1.0 + growth * (1.0 - (-x * speed).exp())
                })
            },
        ),
        ("like a logarithm", &[Plateau, Burst, Steady], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let speed = random.magnitude(10.0, 1_000.0);
            recorded(&setting(random, growth), random, |x| {
                1.0 + growth * (1.0 + x * speed).ln() / (1.0 + speed).ln()
            })
        }),
        ("warm-up", &[Plateau, Burst, Steady], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let warm = random.between(0.02, 0.2);
            recorded(&setting(random, growth), random, |x| {
                1.0 + growth * (x / warm).min(1.0).powf(0.7) + 0.02 * x
            })
        }),
    ]);
}

#[test]
fn steps_are_no_leak() {
    check(&[
        ("one step", &[Burst], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let at = random.between(0.21, 0.95);
            recorded(&setting(random, growth), random, |x| {
                if x < at { 1.0 } else { 1.0 + growth }
            })
        }),
        ("three datasets", &[Burst, Plateau], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let at = [
                random.between(0.02, 0.3),
                random.between(0.35, 0.6),
                random.between(0.65, 0.95),
            ];
            recorded(&setting(random, growth), random, |x| {
                1.0 + growth * at.iter().filter(|at| x >= **at).count() as f64
            })
        }),
        ("some steps", &[Burst, Plateau, Steady], 0.99, |random| {
            let n = random.count(2, 5);
            let at: Vec<(f64, f64)> = (0..n)
                .map(|_| (random.between(0.0, 1.0), random.magnitude(0.05, 2.0)))
                .collect();
            let growth = at.iter().map(|(_, growth)| growth).sum::<f64>();
            recorded(&setting(random, growth), random, |x| {
                1.0 + at
                    .iter()
                    .filter(|(at, _)| x >= *at)
                    .map(|(_, growth)| growth)
                    .sum::<f64>()
            })
        }),
        ("three slow loads", &[Burst, Plateau], 0.99, |random| {
            let growth = random.magnitude(0.3, 8.0);
            let load = random.between(0.02, 0.15);
            recorded(&setting(random, growth), random, |x| {
                let done = [0.05, 0.4, 0.75]
                    .iter()
                    .map(|at| ((x - at) / load).clamp(0.0, 1.0));
                1.0 + growth * done.sum::<f64>()
            })
        }),
        ("at the very end", &[Burst], 0.99, |random| {
            let growth = random.magnitude(0.5, 8.0);
            let setting = setting(random, growth);
            let begin = random.between(0.94, 0.99).max(1.0 - 200.0 / setting.seconds);
            recorded(&setting, random, |x| {
                1.0 + growth * ((x - begin) / (1.0 - begin)).max(0.0)
            })
        }),
        ("and back", &[Burst, Sawtooth], 0.99, |random| {
            let growth = random.magnitude(0.5, 8.0);
            let from = random.between(0.05, 0.6);
            let to = from + random.between(0.05, 0.3);
            recorded(&setting(random, growth), random, |x| {
                if (from..to).contains(&x) {
                    1.0 + growth
                } else {
                    1.0
                }
            })
        }),
        ("kept by the allocator", &[Burst, Plateau], 0.99, |random| {
            let growth = random.magnitude(0.5, 8.0);
            let (from, to) = (random.between(0.05, 0.3), random.between(0.35, 0.6));
            let kept = random.between(0.6, 1.0);
            recorded(&setting(random, growth), random, |x| match x {
                _ if x < from => 1.0,
                _ if x < to => 1.0 + growth,
                _ => 1.0 + growth * kept,
            })
        }),
    ]);
}

#[test]
fn epochs_are_no_leak() {
    check(&[
        ("even epochs", &[Sawtooth], 0.97, |random| {
            let setting = Setting::drawn(random);
            let n = random.magnitude(2.2, 60.0f64.min(setting.looks() / 6.0));
            let height = random.magnitude(0.2, 4.0);
            let phase = random.between(0.0, 1.0);
            recorded(&setting, random, |x| 1.0 + height * teeth(x, n, phase))
        }),
        ("uneven epochs", &[Sawtooth], 0.97, |random| {
            let mut setting = Setting::drawn(random);
            setting.noise = setting.noise.min(0.01);
            let n = random.magnitude(3.2, 60.0f64.min(setting.looks() / 6.0));
            let height = random.magnitude(0.2, 4.0);
            let heights: Vec<f64> = (0..64).map(|_| height * random.between(0.7, 1.1)).collect();
            let floors: Vec<f64> = (0..64).map(|_| 1.0 + height * random.between(0.0, 0.1)).collect();
            recorded(&setting, random, |x| {
                let epoch = (x * n) as usize;
                floors[epoch] + heights[epoch] * (x * n).fract().powf(0.7)
            })
        }),
        (
            "a first epoch that rises",
            &[Sawtooth, Burst, Plateau],
            0.99,
            |random| {
                let setting = Setting::drawn(random);
                let n = random.magnitude(2.2, 40.0f64.min(setting.looks() / 6.0));
                let growth = random.magnitude(0.3, 4.0);
                let height = random.between(0.3, 1.0) * growth;
                recorded(&setting, random, |x| match x * n {
                    t if t < 1.0 => 1.0 + growth * t,
                    t => 1.0 + growth - height * (1.0 - t.fract()),
                })
            },
        ),
        (
            "training and validation",
            &[Sawtooth, Burst, Plateau],
            0.99,
            |random| {
                let setting = Setting::drawn(random);
                let n = random.between(2.0, 4.9);
                let height = random.magnitude(0.3, 4.0);
                let part = random.between(0.5, 0.9);
                recorded(&setting, random, |x| match (x * n).fract() {
                    t if t < part => 1.0 + height * (t / part * 6.0).min(1.0),
                    _ => 1.0,
                })
            },
        ),
    ]);
}
