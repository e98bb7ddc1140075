//! What a record batch of a pack holds, and where each buffer stands in it.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use super::frame::ALIGN;

/// The columns of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Encoded rows as a pass gives them: `dense`, `places` and `values` where the width has them, then `target`,
    /// `held_out` and `line`.
    Rows { dense: usize, sparse: usize },
    /// Rows for trees: a byte per feature in `bins`, then `target` and `held_out`.
    Bins { features: usize },
    /// Rows for networks, all of one length: so many values each in `sample`.
    Samples { values: usize },
    /// Images, all of one size: so many bytes each in `sample`, the last of which tells whether there is one.
    Pixels { values: usize },
    /// No rows but the values of an array that is compressed elsewhere, as they stand.
    Unpacked,
}

/// A stretch of a batch's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub at: u64,
    pub bytes: u64,
}

/// How the body of one batch is laid out.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The buffers in the order of the file, for writing and reading.
    pub segments: Vec<Segment>,
    /// The buffers in the order of the schema; those of no bytes say that no value is missing.
    pub buffers: Vec<Segment>,
    /// The lengths of all columns and of their children, in the order of the schema.
    pub lengths: Vec<u64>,
    pub bytes: u64,
}

impl Layout {
    pub(crate) fn schema(&self) -> Schema {
        let list = |of: DataType| Arc::new(Field::new("item", of, false));
        let fixed = |of: DataType, n: usize| DataType::FixedSizeList(list(of), n as i32);
        let mut fields = Vec::new();
        let mut field = |name: &str, kind: DataType| fields.push(Field::new(name, kind, false));
        match *self {
            Layout::Rows { dense, sparse } => {
                if dense > 0 {
                    field("dense", fixed(DataType::Float32, dense));
                }
                if sparse > 0 {
                    field("places", DataType::List(list(DataType::UInt32)));
                    field("values", DataType::List(list(DataType::Float32)));
                }
                field("target", DataType::Float64);
                field("held_out", DataType::UInt8);
                field("line", DataType::UInt64);
            }
            Layout::Bins { features } => {
                field("bins", fixed(DataType::UInt8, features));
                field("target", DataType::Float32);
                field("held_out", DataType::UInt8);
            }
            Layout::Samples { values } => field("sample", fixed(DataType::Float32, values)),
            Layout::Pixels { values } => field("sample", fixed(DataType::UInt8, values)),
            Layout::Unpacked => {}
        }
        Schema::new(fields)
    }

    /// The body of a batch of so many rows with so many sparse values in all.
    pub(crate) fn body(&self, n_rows: u64, n_values: u64) -> Body {
        let mut body = Body::default();
        match *self {
            Layout::Rows { dense, sparse } => {
                if dense > 0 {
                    body.fixed(n_rows, dense, 4);
                }
                if sparse > 0 {
                    // Arrow counts from a first offset of zero, a batch begins with the end of its first row. Both
                    // lists have the same offsets, which are written once.
                    let zero = body.add_packed(4);
                    let ends = body.add(n_rows * 4);
                    let offsets = Segment {
                        at: zero.at,
                        bytes: zero.bytes + ends.bytes,
                    };
                    let (places, values) = (body.add(n_values * 4), body.add(n_values * 4));
                    for child in [places, values] {
                        body.column(n_rows, &[offsets]);
                        body.column(n_values, &[child]);
                    }
                }
                for width in [8, 1, 8] {
                    let at = body.add(n_rows * width);
                    body.column(n_rows, &[at]);
                }
            }
            Layout::Bins { features } => {
                body.fixed(n_rows, features, 1);
                for width in [4, 1] {
                    let at = body.add(n_rows * width);
                    body.column(n_rows, &[at]);
                }
            }
            Layout::Samples { values } => body.fixed(n_rows, values, 4),
            Layout::Pixels { values } => body.fixed(n_rows, values, 1),
            Layout::Unpacked => {}
        }
        body
    }

    /// What a row takes on disk with so many sparse values on average.
    pub fn row_bytes(&self, sparse_values: f64) -> f64 {
        match *self {
            Layout::Rows { dense, sparse: 0 } => dense as f64 * 4.0 + 17.0,
            Layout::Rows { dense, .. } => dense as f64 * 4.0 + 21.0 + sparse_values * 8.0,
            Layout::Bins { features } => features as f64 + 5.0,
            Layout::Samples { values } => values as f64 * 4.0,
            Layout::Pixels { values } => values as f64,
            Layout::Unpacked => 0.0,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Rows { dense, sparse } => write!(f, "rows of {dense} dense and {sparse} sparse places"),
            Layout::Bins { features } => write!(f, "bins of {features} features"),
            Layout::Samples { values } => write!(f, "samples of {values} values"),
            Layout::Pixels { values } => write!(f, "images of {values} bytes"),
            Layout::Unpacked => f.write_str("an unpacked array"),
        }
    }
}

impl Body {
    /// A buffer on a boundary of its own, as Arrow recommends.
    fn add(&mut self, bytes: u64) -> Segment {
        let segment = self.add_packed(bytes);
        self.bytes = self.bytes.saturating_add(ALIGN - 1) / ALIGN * ALIGN;
        segment
    }

    fn add_packed(&mut self, bytes: u64) -> Segment {
        let segment = Segment {
            at: self.bytes,
            bytes,
        };
        self.segments.push(segment);
        self.bytes = self.bytes.saturating_add(bytes);
        segment
    }

    /// A column of lists of `n` values of so many bytes each.
    fn fixed(&mut self, n_rows: u64, n: usize, bytes: u64) {
        let values = n_rows.saturating_mul(n as u64);
        let at = self.add(values.saturating_mul(bytes));
        self.column(n_rows, &[]);
        self.column(values, &[at]);
    }

    fn column(&mut self, length: u64, buffers: &[Segment]) {
        self.lengths.push(length);
        self.buffers.push(Segment { at: 0, bytes: 0 });
        self.buffers.extend_from_slice(buffers);
    }
}
