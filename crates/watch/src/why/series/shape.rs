//! What a series of points looks like: floors, slopes, steps and swings.

use super::samples::Point;

/// From the first point to the last.
pub(super) fn span(points: &[Point]) -> f64 {
    match (points.first(), points.last()) {
        (Some(first), Some(last)) => last.seconds - first.seconds,
        _ => 0.0,
    }
}

/// The bottom of the series in each of `n` windows of the same length. Of many points in a window the lowest tenth is
/// passed over, so that one stray reading does not make the bottom.
pub(super) fn floors(points: &[Point], n: usize) -> Vec<f64> {
    by_window(points, n, |bytes| {
        bytes.sort_unstable_by(f64::total_cmp);
        bytes[bytes.len() / 10]
    })
}

/// The highest points of `n` windows of the same length.
pub(super) fn peaks(points: &[Point], n: usize) -> Vec<f64> {
    by_window(points, n, |bytes| bytes.iter().copied().fold(0.0, f64::max))
}

/// A window without a point is on the line between its neighbours: nothing moved there, or it would have been recorded.
fn by_window(points: &[Point], n: usize, figure: impl Fn(&mut [f64]) -> f64) -> Vec<f64> {
    let Some(first) = points.first() else {
        return Vec::new();
    };
    let length = (span(points) / n as f64).max(1e-9);
    let mut found = vec![None; n];
    let mut rest = points;
    while let Some(point) = rest.first() {
        let window = |point: &Point| (((point.seconds - first.seconds) / length) as usize).min(n - 1);
        let here = window(point);
        let count = rest.iter().take_while(|point| window(point) == here).count();
        let mut bytes: Vec<f64> = rest[..count].iter().map(|point| point.bytes).collect();
        found[here] = Some(figure(&mut bytes));
        rest = &rest[count..];
    }
    fill_gaps(&found)
}

fn fill_gaps(found: &[Option<f64>]) -> Vec<f64> {
    let mut values = Vec::with_capacity(found.len());
    for (place, value) in found.iter().enumerate() {
        let before = values.last().copied();
        let after = found[place..].iter().position(Option::is_some);
        let filled = match (value, before, after) {
            (Some(value), ..) => *value,
            (None, Some(before), Some(ahead)) => {
                before + (found[place + ahead].unwrap_or(before) - before) / (ahead + 1) as f64
            }
            (None, Some(before), None) => before,
            (None, None, _) => 0.0,
        };
        values.push(filled);
    }
    values
}

/// From each value on, the least that is still to come: what is never given back.
pub(super) fn kept(values: &[f64]) -> Vec<f64> {
    let mut kept = values.to_vec();
    for place in (1..kept.len()).rev() {
        kept[place - 1] = kept[place - 1].min(kept[place]);
    }
    kept
}

/// The middle one of the slopes of all pairs, by place (Theil and Sen): up to a quarter of the values may be off.
pub(super) fn middle_slope(values: &[f64]) -> f64 {
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for (later, value) in values.iter().enumerate() {
        let earlier = values[..later].iter().enumerate();
        slopes.extend(earlier.map(|(place, before)| (value - before) / (later - place) as f64));
    }
    middle(&mut slopes)
}

/// The slope of the line through points, by least squares, in bytes a second.
pub(super) fn slope(points: &[Point]) -> f64 {
    let n = points.len() as f64;
    let seconds = points.iter().map(|point| point.seconds).sum::<f64>() / n;
    let bytes = points.iter().map(|point| point.bytes).sum::<f64>() / n;
    let (mut both, mut square) = (0.0, 0.0);
    for point in points {
        both += (point.seconds - seconds) * (point.bytes - bytes);
        square += (point.seconds - seconds).powi(2);
    }
    if square > 0.0 { both / square } else { 0.0 }
}

/// The points from one share of the time to another.
pub(super) fn part(points: &[Point], from: f64, to: f64) -> &[Point] {
    let start = points.first().map_or(0.0, |point| point.seconds);
    let place = |share: f64| {
        let seconds = start + span(points) * share;
        points.partition_point(|point| point.seconds < seconds)
    };
    // The last point belongs to the end.
    let end = if to >= 1.0 { points.len() } else { place(to) };
    &points[place(from).min(end)..end]
}

/// Whether values rise from the first to the last: how many pairs do so more than fall, in multiples of what chance does
/// (Mann and Kendall).
pub(super) fn trend(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mut more = 0.0;
    for (later, value) in values.iter().enumerate() {
        let rises = values[..later].iter().filter(|before| *before < value).count();
        let falls = values[..later].iter().filter(|before| *before > value).count();
        more += rises as f64 - falls as f64;
    }
    more / (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt().max(1.0)
}

/// The median; 0 of nothing.
pub(super) fn middle(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = values.len() / 2;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// How much single points stray, as a standard deviation: from how far they are off the line between their neighbours.
/// Slopes, steps and the teeth of a saw are no noise, so it is the calmest quarter that tells, unless the series turns at
/// every other point.
pub(super) fn noise(points: &[Point]) -> f64 {
    let off = |three: &[Point]| three[1].bytes - (three[0].bytes + three[2].bytes) / 2.0;
    let turns = points
        .windows(3)
        .filter(|three| (three[1].bytes - three[0].bytes) * (three[2].bytes - three[1].bytes) < 0.0);
    let is_rough = turns.count() * 2 > points.len();
    // Of a normal distribution a quarter is within 0.3186 of its deviation, half within 0.6745.
    let (share, within) = if is_rough { (2, 0.6745) } else { (4, 0.3186) };
    let mut off: Vec<f64> = points.windows(3).map(|three| off(three).abs()).collect();
    if off.is_empty() {
        return 0.0;
    }
    let place = off.len() / share;
    // The difference to the mean of two neighbours has the variance 3/2.
    *off.select_nth_unstable_by(place, f64::total_cmp).1 / within / 1.5_f64.sqrt()
}

/// How far the highest and the lowest of as many points of pure noise are apart, with something to spare, the more so the
/// fewer points there are to know the noise from.
pub(super) fn width_of_noise(points: &[Point]) -> f64 {
    let n = points.len().max(2) as f64;
    noise(points) * (2.0 * (2.0 * n.ln()).sqrt() + 1.0 + 10.0 / n.sqrt())
}

/// A parabola through values at equal distances, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    /// Slopes at the first and at the last value, per place.
    pub(super) slope_at_start: f64,
    pub(super) slope_at_end: f64,
    /// The bend, in multiples of its own standard error: over 3 it is hardly chance.
    pub(super) certainty: f64,
}

pub(super) fn curve(values: &[f64]) -> Curve {
    let n = values.len() as f64;
    let half = (n - 1.0) / 2.0;
    let x = |place: usize| place as f64 - half;
    // x and x² - mean(x²) are orthogonal to each other and to 1 on a symmetric grid.
    let mean_square = (n * n - 1.0) / 12.0;
    let mean = values.iter().sum::<f64>() / n;
    let (mut by_x, mut by_bend, mut of_bend) = (0.0, 0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let bend = x(place).powi(2) - mean_square;
        by_x += x(place) * value;
        by_bend += bend * value;
        of_bend += bend * bend;
    }
    let slope = by_x / (n * mean_square);
    let bend = by_bend / of_bend;
    let left = values.iter().enumerate().map(|(place, value)| {
        let fitted = mean + slope * x(place) + bend * (x(place).powi(2) - mean_square);
        (value - fitted).powi(2)
    });
    let variance = left.sum::<f64>() / (n - 3.0).max(1.0);
    Curve {
        slope_at_start: slope - 2.0 * bend * half,
        slope_at_end: slope + 2.0 * bend * half,
        certainty: bend.abs() / (variance / of_bend).sqrt().max(f64::MIN_POSITIVE),
    }
}

/// A way from a bottom to a top or back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Swing {
    pub(super) from: Point,
    pub(super) to: Point,
}

impl Swing {
    pub(super) fn bytes(&self) -> f64 {
        self.to.bytes - self.from.bytes
    }
}

/// The series as a zigzag of ways that are each at least `least` bytes long.
pub(super) fn swings(points: &[Point], least: f64) -> Vec<Swing> {
    let mut turns: Vec<Point> = Vec::new();
    let Some(&first) = points.first() else {
        return Vec::new();
    };
    // The way is open until the series has moved by `least` from its lowest or its highest point.
    let (mut low, mut high, mut rising) = (first, first, None);
    for &point in points {
        if point.bytes < low.bytes {
            low = point;
        }
        if point.bytes > high.bytes {
            high = point;
        }
        match rising {
            None if point.bytes - low.bytes >= least => {
                turns.push(low);
                (rising, high) = (Some(true), point);
            }
            None if high.bytes - point.bytes >= least => {
                turns.push(high);
                (rising, low) = (Some(false), point);
            }
            Some(true) if high.bytes - point.bytes >= least => {
                turns.push(high);
                (rising, low) = (Some(false), point);
            }
            Some(false) if point.bytes - low.bytes >= least => {
                turns.push(low);
                (rising, high) = (Some(true), point);
            }
            _ => {}
        }
    }
    match rising {
        Some(true) => turns.push(high),
        Some(false) => turns.push(low),
        None => {}
    }
    let ways = turns.windows(2);
    ways.map(|ends| Swing {
        from: ends[0],
        to: ends[1],
    })
    .collect()
}
