//! Many values drawn by a few points, so that no spike is lost.

/// The smallest and the largest of a stretch of values with their numbers, and the number of the first that was not finite.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) low: Option<(f64, i64)>,
    pub(crate) high: Option<(f64, i64)>,
    pub(crate) gap: Option<i64>,
}

impl Extremes {
    /// Of a stretch of one value.
    pub(crate) fn of(number: i64, value: Option<f64>) -> Extremes {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Extremes {
                low: Some((value, number)),
                high: Some((value, number)),
                gap: None,
            },
            None => Extremes {
                gap: Some(number),
                ..Extremes::default()
            },
        }
    }

    /// Together with the stretch that follows.
    fn and(self, next: Extremes) -> Extremes {
        let either = |one: Option<(f64, i64)>,
                      other: Option<(f64, i64)>,
                      takes_other: fn(f64, f64) -> bool| match (one, other) {
            (Some(one), Some(other)) if takes_other(one.0, other.0) => Some(other),
            (one, other) => one.or(other),
        };
        Extremes {
            low: either(self.low, next.low, |one, other| other < one),
            high: either(self.high, next.high, |one, other| other > one),
            gap: self.gap.or(next.gap),
        }
    }

    fn numbers(&self) -> impl Iterator<Item = i64> {
        let (low, high) = (self.low.map(|end| end.1), self.high.map(|end| end.1));
        [low, high.filter(|high| Some(*high) != low), self.gap]
            .into_iter()
            .flatten()
    }
}

/// Takes stretches as they come, and puts neighbours together whenever they would be more points than may be.
#[derive(Debug)]
pub(crate) struct Envelope {
    most: usize,
    stretches: Vec<Extremes>,
    points: usize,
    /// What was pushed into a stretch, and into the last one so far.
    per_stretch: u64,
    in_last: u64,
    first: Option<i64>,
    last: Option<i64>,
}

/// With fewer points there is nothing to see; more do not fit onto any screen.
const FEWEST: usize = 8;
const MOST: usize = 20_000;

impl Envelope {
    pub(crate) fn new(points: usize) -> Envelope {
        Envelope {
            // The two ends are always kept.
            most: points.clamp(FEWEST, MOST) - 2,
            stretches: Vec::new(),
            points: 0,
            per_stretch: 1,
            in_last: 0,
            first: None,
            last: None,
        }
    }

    pub(crate) fn push(&mut self, extremes: Extremes) {
        self.first = self.first.or(extremes.numbers().min());
        self.last = extremes.numbers().max().or(self.last);
        match self.stretches.last_mut() {
            Some(last) if self.in_last < self.per_stretch => {
                self.points -= last.numbers().count();
                *last = last.and(extremes);
                self.points += last.numbers().count();
                self.in_last += 1;
            }
            _ => {
                self.points += extremes.numbers().count();
                self.stretches.push(extremes);
                self.in_last = 1;
            }
        }
        while self.points > self.most && self.stretches.len() > 1 {
            self.put_neighbours_together();
        }
    }

    fn put_neighbours_together(&mut self) {
        if self.stretches.len().is_multiple_of(2) {
            self.in_last += self.per_stretch;
        }
        self.stretches = self
            .stretches
            .chunks(2)
            .map(|pair| pair[1..].iter().fold(pair[0], |one, other| one.and(*other)))
            .collect();
        self.per_stretch *= 2;
        self.points = self
            .stretches
            .iter()
            .map(|stretch| stretch.numbers().count())
            .sum();
    }

    /// Where the whole begins and ends, where what was pushed does not say it.
    pub(crate) fn set_ends(&mut self, first: Option<i64>, last: Option<i64>) {
        (self.first, self.last) = (first.or(self.first), last.or(self.last));
    }

    pub(crate) fn first(&self) -> Option<i64> {
        self.first
    }

    /// The numbers of the values to draw, in order.
    pub(crate) fn numbers(&self) -> Vec<i64> {
        let inner = self.stretches.iter().flat_map(Extremes::numbers);
        let mut numbers: Vec<i64> = inner.chain(self.first).chain(self.last).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
