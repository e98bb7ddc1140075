//! A timeline as lines of a terminal: blocks for memory, dashes for the line, marks for what happened.

use tidegate_memory::format_bytes;

use super::timeline::{AXIS_WIDTH, MomentKind, OTHERS, Timeline};
use super::words::moment;

/// From an eighth of a cell to the whole.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How layers are told apart without colour, and with it (blue, yellow, magenta, cyan, and grey for the others).
const FILLS: [char; 5] = ['█', '▒', '▓', '░', '·'];
const COLOURS: [u8; 5] = [34, 33, 35, 36, 90];
const RED: u8 = 31;
const GREY: u8 = 90;
/// A line so far above all that was used would press it to the ground: it is told instead.
const FAR_ABOVE: f64 = 3.0;

/// What stands in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    text: char,
    colour: Option<u8>,
    /// Behind a block that does not fill its cell.
    behind: Option<u8>,
}

const EMPTY: Cell = Cell {
    text: ' ',
    colour: None,
    behind: None,
};

impl Timeline {
    /// The lines of a drawing, none wider than asked for.
    pub fn draw(&self, colour: bool) -> Vec<String> {
        let mut lines = self.plot(colour);
        lines.push(self.axis());
        lines.push(self.times());
        if self.moments.iter().any(|moment| moment.kind != MomentKind::End) {
            lines.push(self.marks());
        }
        lines.push(Vec::new());
        lines.extend(self.legend(colour));
        lines.extend(self.told());
        lines
            .iter()
            .map(|cells| text_of(&cells[..cells.len().min(self.width)], colour))
            .collect()
    }

    fn n_columns(&self) -> usize {
        self.total.len()
    }

    /// The highest value that is drawn: a little above all that was used, and above the line unless that is far away.
    fn top(&self) -> f64 {
        let peak = self.total.iter().copied().max().unwrap_or(0).max(1) as f64;
        match self.limit {
            Some(limit) if (limit as f64) < peak * FAR_ABOVE => peak.max(limit as f64) * 1.05,
            _ => peak * 1.02,
        }
    }

    fn column_of(&self, time_ms: u64) -> usize {
        let share = time_ms as f64 / self.end_ms as f64;
        ((share * self.n_columns() as f64) as usize).min(self.n_columns() - 1)
    }

    fn plot(&self, colour: bool) -> Vec<Vec<Cell>> {
        let top = self.top();
        let per_row = top / self.height as f64;
        let row_of = |bytes: f64| (bytes / per_row) as usize;
        let mut rows = vec![vec![EMPTY; self.n_columns()]; self.height];
        for column in 0..self.n_columns() {
            let layers: Vec<f64> = self
                .layers
                .iter()
                .map(|layer| layer.bytes[column] as f64)
                .collect();
            for (row, cells) in rows.iter_mut().enumerate() {
                cells[column] = self.filled(&layers, (row as f64 * per_row, per_row), colour);
            }
        }
        if let Some(limit) = self.limit.filter(|&limit| (limit as f64) < top) {
            let label: Vec<char> = format!("╌╌ limit {} ", format_bytes(limit)).chars().collect();
            let row = &mut rows[row_of(limit as f64).min(self.height - 1)];
            for (column, cell) in row.iter_mut().enumerate().filter(|(_, cell)| **cell == EMPTY) {
                *cell = plain(label.get(column).copied().unwrap_or('╌'), Some(RED));
            }
        }
        if let Some(death) = self
            .moments
            .iter()
            .find(|moment| moment.kind == MomentKind::Death)
        {
            let column = self.column_of(death.time_ms);
            let above = rows.iter().position(|cells| {
                !BLOCKS.contains(&cells[column].text) && !FILLS.contains(&cells[column].text)
            });
            rows[above.unwrap_or(self.height - 1)][column] = plain('✕', Some(RED));
        }
        let ticks = ticks(top, self.height.div_ceil(3).clamp(1, 6), &[1.0, 2.0, 2.5, 5.0]);
        let labelled = rows.iter().enumerate().map(|(row, cells)| {
            let tick = ticks.iter().find(|tick| row_of(**tick) == row);
            let label = tick.map_or(String::new(), |tick| format_bytes(tick.round() as u64));
            let edge = if tick.is_some() { '┤' } else { '│' };
            let mut line = words(
                &format!("{label:>width$} {edge}", width = AXIS_WIDTH - 2),
                Some(GREY),
            );
            line.extend(cells);
            line
        });
        let mut lines: Vec<Vec<Cell>> = labelled.collect();
        lines.reverse();
        lines
    }

    /// The character and the colour of a layer; the others have the last ones.
    fn fill(&self, place: usize, colour: bool) -> (char, u8) {
        let last = FILLS.len() - 1;
        let is_others = self.layers.get(place).is_some_and(|layer| layer.label == OTHERS);
        let place = if is_others { last } else { place.min(last) };
        (if colour { '█' } else { FILLS[place] }, COLOURS[place])
    }

    /// One cell of a column of layers that stand on each other, from so many bytes on and so many high: the two that have
    /// most of it, in eighths.
    fn filled(&self, layers: &[f64], (from, height): (f64, f64), colour: bool) -> Cell {
        let mut below = 0.0;
        let mut parts: Vec<(usize, f64)> = Vec::new();
        for (place, bytes) in layers.iter().enumerate() {
            let part = ((below + bytes).min(from + height) - below.max(from)).max(0.0) / height;
            below += bytes;
            if part > 0.0 {
                parts.push((place, part));
            }
        }
        let larger = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
        let Some(&(most, most_part)) = parts.iter().max_by(larger) else {
            return EMPTY;
        };
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        let eighths = |part: f64| ((part * 8.0).round() as usize).min(8);
        if colour && sum > 0.99 && parts.len() > 1 && most_part < 0.95 {
            let (lower, part) = parts[0];
            let upper = parts
                .iter()
                .skip(1)
                .max_by(larger)
                .map_or(most, |(place, _)| *place);
            return Cell {
                text: BLOCKS[eighths(part).max(1) - 1],
                colour: Some(self.fill(lower, true).1),
                // Ten more is the same colour as a background.
                behind: Some(self.fill(upper, true).1 + 10),
            };
        }
        let (text, paint) = self.fill(most, colour);
        // What is there is seen, however little it is.
        match eighths(sum).max(usize::from(from == 0.0)) {
            0 => EMPTY,
            // Without colours only the first layer has parts of cells to show.
            eighths if !colour && most > 0 && eighths < 4 => EMPTY,
            _ if !colour && most > 0 => plain(text, Some(paint)),
            eighths => plain(BLOCKS[eighths - 1], Some(paint)),
        }
    }

    /// Moments on the axis at round figures, and the end. Each with its column.
    fn time_ticks(&self) -> Vec<(usize, String)> {
        let seconds = self.end_ms as f64 / 1e3;
        let n = (self.n_columns() / 14).clamp(1, 8);
        let steps: &[f64] = match seconds {
            _ if seconds < 60.0 => &[1.0, 2.0, 5.0],
            // Minutes and hours are halved and quartered, not divided by ten.
            _ => &[
                60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0, 86_400.0,
            ],
        };
        let ticks = match seconds {
            _ if seconds < 60.0 => ticks(seconds, n, steps),
            _ => {
                let step = steps.iter().find(|step| seconds / **step <= n as f64);
                let step = *step.unwrap_or(&(seconds / n as f64));
                (1..=n).map(|place| place as f64 * step).collect()
            }
        };
        let end = if seconds < 60.0 {
            short(seconds)
        } else {
            moment(seconds)
        };
        let last = self.n_columns().saturating_sub(end.chars().count());
        let mut all = vec![(0, "0".to_string())];
        for tick in ticks {
            let (column, label) = (self.column_of((tick * 1e3) as u64), short(tick));
            // Room for blanks before the end.
            if column + label.chars().count() + 1 < last {
                all.push((column, label));
            }
        }
        all.push((last, end));
        all
    }

    fn axis(&self) -> Vec<Cell> {
        let mut line = words(&format!("{:>width$}", '└', width = AXIS_WIDTH), Some(GREY));
        let start = line.len();
        line.extend(vec![plain('─', Some(GREY)); self.n_columns()]);
        for (column, _) in self.time_ticks() {
            if column > 0 && column + 8 < self.n_columns() {
                line[start + column].text = '┬';
            }
        }
        line
    }

    fn times(&self) -> Vec<Cell> {
        let mut line = vec![EMPTY; AXIS_WIDTH + self.n_columns()];
        for (column, label) in self.time_ticks() {
            for (place, letter) in label.chars().enumerate() {
                if let Some(cell) = line.get_mut(AXIS_WIDTH + column + place) {
                    *cell = plain(letter, Some(GREY));
                }
            }
        }
        line
    }

    /// What happened, below the time at which it did. Of several in one column, the last; the death before all.
    fn marks(&self) -> Vec<Cell> {
        let mut line = vec![EMPTY; AXIS_WIDTH + self.n_columns()];
        for moment in self
            .moments
            .iter()
            .filter(|moment| moment.kind != MomentKind::End)
        {
            let (text, colour) = mark(moment.kind);
            let cell = &mut line[AXIS_WIDTH + self.column_of(moment.time_ms)];
            if cell.text != mark(MomentKind::Death).0 {
                *cell = plain(text, Some(colour));
            }
        }
        line
    }

    fn legend(&self, colour: bool) -> Vec<Vec<Cell>> {
        let entries = self.layers.iter().enumerate().map(|(place, layer)| {
            let (fill, paint) = self.fill(place, colour);
            let most = layer.bytes.iter().copied().max().unwrap_or(0);
            let mut entry = vec![plain(fill, Some(paint))];
            entry.extend(words(
                &format!(" {}, at most {}", layer.label, format_bytes(most)),
                None,
            ));
            entry
        });
        let mut entries: Vec<Vec<Cell>> = entries.collect();
        if let Some(limit) = self.limit.filter(|&limit| limit as f64 >= self.top()) {
            entries.push(words(&format!("limit {}, far above", format_bytes(limit)), None));
        }
        flow(entries, self.width)
    }

    fn told(&self) -> Vec<Vec<Cell>> {
        let told = self
            .moments
            .iter()
            .filter(|moment| moment.kind != MomentKind::End);
        let entries = told.map(|told| {
            let (text, colour) = mark(told.kind);
            let mut entry = vec![plain(text, Some(colour))];
            entry.extend(words(
                &format!(" {} {}", moment(told.time_ms as f64 / 1e3), told.text),
                None,
            ));
            entry
        });
        flow(entries.collect(), self.width)
    }
}

fn mark(kind: MomentKind) -> (char, u8) {
    match kind {
        MomentKind::OomKill => ('!', RED),
        MomentKind::Signal => ('▲', COLOURS[1]),
        MomentKind::ChildDeath => ('†', RED),
        MomentKind::Death => ('✕', RED),
        MomentKind::End => ('■', GREY),
    }
}

fn plain(text: char, colour: Option<u8>) -> Cell {
    Cell {
        text,
        colour,
        behind: None,
    }
}

fn words(text: &str, colour: Option<u8>) -> Vec<Cell> {
    text.chars().map(|letter| plain(letter, colour)).collect()
}

/// About `n` round figures up to `end`: multiples of a power of ten times one of `steps`.
fn ticks(end: f64, n: usize, steps: &[f64]) -> Vec<f64> {
    let mut power = 10.0_f64.powf((end / n as f64).log10().floor() - 1.0);
    loop {
        if let Some(step) = steps
            .iter()
            .map(|step| step * power)
            .find(|step| end / step <= n as f64 + 0.5)
        {
            let count = (end / step) as usize;
            return (1..=count).map(|place| place as f64 * step).collect();
        }
        power *= 10.0;
    }
}

/// A round moment on the axis: `0.5 s`, `20 s`, `5 min`, `2 h`.
fn short(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round() / 10.0;
    match seconds {
        _ if seconds < 60.0 => format!("{tenths} s"),
        _ if seconds % 3_600.0 == 0.0 => format!("{} h", seconds / 3_600.0),
        _ if seconds < 3_600.0 && seconds % 60.0 == 0.0 => format!("{} min", seconds / 60.0),
        _ => moment(seconds),
    }
}

/// Entries side by side, on as many lines as they take.
fn flow(entries: Vec<Vec<Cell>>, width: usize) -> Vec<Vec<Cell>> {
    let indent = AXIS_WIDTH.min(width / 4);
    let mut lines: Vec<Vec<Cell>> = Vec::new();
    for entry in entries {
        match lines.last_mut() {
            Some(line) if line.len() + 3 + entry.len() <= width => {
                line.extend([EMPTY; 3]);
                line.extend(entry);
            }
            _ => {
                let mut line = vec![EMPTY; indent];
                line.extend(entry);
                lines.push(line);
            }
        }
    }
    lines
}

/// Cells as text; neighbours of one colour share its codes.
fn text_of(cells: &[Cell], colour: bool) -> String {
    let mut text = String::new();
    let mut now = (None, None);
    for cell in cells {
        let wanted = (cell.colour, cell.behind);
        if colour && wanted != now {
            if now != (None, None) {
                text += "\x1b[0m";
            }
            for code in [cell.colour, cell.behind].into_iter().flatten() {
                text += &format!("\x1b[{code}m");
            }
            now = wanted;
        }
        text.push(cell.text);
    }
    if now != (None, None) {
        text += "\x1b[0m";
    }
    text.trim_end().to_string()
}
