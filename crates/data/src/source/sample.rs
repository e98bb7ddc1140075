//! A look at a part by reading a few of its pieces, for formats that know their columns.

use tidegate_memory::Ledger;

use super::{Kind, Part, Piece, Position, Reading};
use crate::chunk::{Chunk, Read, Wanted};
use crate::csv::blocks::TextBuffer;
use crate::profile::{COLUMN_BYTES, COUNTED, ColumnProfile, Profile, VALUE_BYTES};
use crate::{BadRows, Error, Result};

/// Rows looked at from each start, at most.
const ROWS: u64 = 16 << 10;

/// How to look at a part.
struct Look<'l> {
    starts: &'l [Position],
    /// A column holds what its type says. Else it may hold anything, and the type is believed where the values bear
    /// it out.
    typed: bool,
}

/// Reads pieces of all columns at each of `starts` and looks at their values. From the only start, reading goes on
/// until it has seen enough rows; from one of several, one piece is read. Bad rows are the business of the pass.
pub(crate) fn profile(
    part: &dyn Part,
    reading: &Reading,
    starts: &[Position],
    ledger: &Ledger,
) -> Result<Profile> {
    look(part, reading, &Look { starts, typed: true }, ledger)
}

/// The same from the first row on, for a part that declares types and enforces none.
pub(crate) fn profile_declared(part: &dyn Part, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
    let starts = &[Position::default()];
    look(part, reading, &Look { starts, typed: false }, ledger)
}

fn look(part: &dyn Part, reading: &Reading, look: &Look, ledger: &Ledger) -> Result<Profile> {
    let Look { starts, typed } = *look;
    let holder = ledger.holder("sample");
    let columns: Vec<_> = part
        .columns()
        .iter()
        .filter(|column| column.kind != Kind::Unsupported)
        .collect();
    let wanted = columns.iter().map(|column| Wanted {
        name: column.name.clone(),
        read: match column.kind {
            Kind::Number | Kind::Time if typed => Read::Number,
            // A truth is looked at as it would be written, and so is what may be anything.
            _ => Read::Text,
        },
    });
    let all = Reading {
        wanted: wanted.collect(),
        missing: reading.missing.clone(),
        bad_rows: BadRows::Skip,
    };
    let size = part.piece_size(&all);
    // As many values may be remembered of each column as there are rows to look at.
    let to_look_at = match starts.len() {
        1 => ROWS + size.rows,
        several => several as u64 * size.rows,
    };
    let values = to_look_at
        .min(part.n_rows().unwrap_or(u64::MAX))
        .min(COUNTED as u64);
    let needed = columns.len() as u64 * (COLUMN_BYTES + values * VALUE_BYTES);
    let _grant = holder.try_grant(needed).map_err(|source| Error::Columns {
        path: part.path().into(),
        columns: columns.len() as u64,
        needed,
        source: source.into(),
    })?;
    let text = (size.text > 0).then(|| TextBuffer::new(&holder)).transpose()?;
    let mut piece = Piece {
        text,
        chunk: Chunk::new(&all.wanted, &all.missing, &holder)?,
    };
    let mut looks: Vec<ColumnProfile> = columns
        .iter()
        .map(|column| ColumnProfile::new(&column.name, column.kind))
        .collect();
    let (mut rows, mut bytes, mut complete) = (0, 0, false);
    for start in starts {
        let mut pieces = part.read(&all, *start, ledger)?;
        let before = rows;
        loop {
            let Some(place) = pieces.read(&mut piece, &mut || false)? else {
                complete = starts.len() == 1;
                break;
            };
            part.decode(&place, &all, &mut piece)?;
            look_at(&piece.chunk, &mut looks, &reading.missing);
            rows += piece.chunk.n_rows() as u64;
            bytes += match size.text {
                0 => part.bytes() / part.n_rows().unwrap_or(1).max(1) * place.lines,
                _ => place.length,
            };
            if starts.len() > 1 || rows - before >= ROWS {
                complete = starts.len() == 1 && part.n_rows() == Some(rows);
                break;
            }
        }
    }
    if !typed {
        looks.iter_mut().for_each(believe);
    }
    // Columns that are not looked at keep their place.
    let mut looks = looks.into_iter();
    let columns = part.columns().iter().map(|column| match column.kind {
        Kind::Unsupported => ColumnProfile::new(&column.name, column.kind),
        _ => looks.next().unwrap_or_default(),
    });
    Ok(Profile {
        columns: columns.collect(),
        rows,
        bytes,
        complete,
    })
}

/// Keeps the declared type only where the values are of it.
fn believe(look: &mut ColumnProfile) {
    let borne_out = match look.kind {
        Kind::Number => look.is_numeric(),
        Kind::Boolean => look.booleans == look.values(),
        _ => true,
    };
    if !borne_out {
        look.kind = Kind::Untyped;
    }
}

fn look_at(chunk: &Chunk, looks: &mut [ColumnProfile], missing: &[String]) {
    for (at, look) in looks.iter_mut().enumerate() {
        match chunk.columns[at].read {
            Read::Text => {
                for (row, line) in chunk.lines.iter().enumerate() {
                    look.look(
                        chunk.text(at, row).unwrap_or_default(),
                        Some(*line),
                        missing,
                        None,
                    );
                }
            }
            _ => chunk
                .numbers(at)
                .iter()
                .for_each(|value| look.look_at_typed(*value)),
        }
    }
}
