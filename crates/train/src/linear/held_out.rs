//! The rows held out, kept in memory while the budget has room, so that evaluating needs no pass of its own.

use tidegate_data::batch::Row;
use tidegate_memory::{Grant, Holder};

/// Rows per piece: memory is asked for piece by piece, never by copying into something larger.
const ROWS: usize = 4096;

/// Either all held out rows seen so far, or none at all: once the budget refuses a piece, the kept ones are
/// given back and evaluation reads the file instead. The figures are the same.
pub(super) struct HeldOut {
    width: usize,
    pieces: Vec<Piece>,
    holder: Holder,
    /// Bytes it may take in all.
    limit: u64,
    bytes: u64,
    complete: bool,
}

struct Piece {
    features: Vec<f32>,
    targets: Vec<f64>,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl HeldOut {
    pub(super) fn new(width: usize, holder: Holder, limit: u64) -> HeldOut {
        HeldOut {
            width,
            pieces: Vec::new(),
            holder,
            limit,
            bytes: 0,
            complete: true,
        }
    }

    /// Rows before this point were not seen: evaluation has to read the file.
    pub(super) fn give_up(&mut self) {
        self.pieces = Vec::new();
        self.complete = false;
    }

    /// Whether all held out rows of the table are here.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn push(&mut self, row: &Row) {
        if !self.complete {
            return;
        }
        if self.pieces.last().is_none_or(|piece| piece.targets.len() == ROWS) && !self.add_piece() {
            return self.give_up();
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.features.extend_from_slice(row.features);
            piece.targets.push(row.target);
        }
    }

    fn add_piece(&mut self) -> bool {
        let bytes = (ROWS * (self.width * size_of::<f32>() + size_of::<f64>())) as u64;
        if self.bytes + bytes > self.limit {
            return false;
        }
        let Ok(grant) = self.holder.try_grant(bytes) else {
            return false;
        };
        self.bytes += bytes;
        self.pieces.push(Piece {
            features: Vec::with_capacity(ROWS * self.width),
            targets: Vec::with_capacity(ROWS),
            grant,
        });
        true
    }

    /// The rows in the order of the file.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[f32], f64)> {
        let width = self.width;
        self.pieces.iter().flat_map(move |piece| {
            piece
                .targets
                .iter()
                .enumerate()
                .map(move |(i, &y)| (&piece.features[i * width..(i + 1) * width], y))
        })
    }
}
