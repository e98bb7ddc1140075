//! One streaming pass that fits every column with bounded state, before anything is encoded.
//!
//! Pieces are summed up on several threads; what they amount to is merged in the order of the source, so the fit
//! does not depend on threads. Rows that are held out take no part: encoders must not know their targets.

use std::ops::ControlFlow;

use tidegate_memory::{Grant, Ledger, Refused};

use crate::chunk::{Chunk, Read};
use crate::encode::{Text, TextOptions, TextScratch, Weigh};
use crate::pass::row_key;
use crate::sketch::hash::{MISSING, fold, hash};
use crate::sketch::{CategoryTable, Distinct, Documents, Moments, Quantiles, Shape, Targets, Times};
use crate::source::{Place, Position};
use crate::table::TableColumn;
use crate::target::{Target, Task};
use crate::{Error, Holdout, Result, Role, RowCounts, Table};

/// How to fit.
#[derive(Debug, Clone, Copy)]
pub struct FitOptions {
    /// The result does not depend on it.
    pub threads: usize,
    pub holdout: Holdout,
    /// Decides which fold a row is in.
    pub seed: u64,
    /// Bytes that the tables of all categories may take together.
    pub bytes: u64,
}

/// Hears of every piece that was taken in, and of the rows so far; may end it.
pub type Progress<'p> = dyn FnMut(Position, u64) -> ControlFlow<()> + 'p;

/// Folds of out-of-fold encodings, unless a column asks for another number.
pub(crate) const FOLDS: u8 = 5;

/// The different values of a column are counted in this.
const SKETCH_BYTES: u64 = 8 << 10;

/// The table of a column with few categories.
const FEW_BYTES: u64 = 1 << 20;

/// What a pass over the training rows says about a table.
#[derive(Debug)]
pub(crate) struct Fitted {
    /// What became of the rows, and in how many pieces they came.
    pub counts: RowCounts,
    pub pieces: u64,
    /// In the order of the table's columns.
    pub columns: Vec<ColumnFit>,
    /// Of a target that is a number.
    pub target: Moments,
    /// Rows of each class of a target of classes.
    pub classes: Vec<u64>,
    /// The memory of it all.
    pub grant: Option<Grant>,
}

impl Fitted {
    /// Rows that the fit is made of.
    pub(crate) fn training_rows(&self) -> u64 {
        self.counts.rows - self.counts.held_out
    }
}

/// What is known of one column.
#[derive(Debug, Clone)]
pub(crate) struct ColumnFit {
    pub missing: u64,
    pub distinct: Distinct,
    pub values: Values,
}

/// The state that fits the encoders of a column.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Numbers {
        moments: Moments,
        quantiles: Quantiles,
    },
    Times {
        times: Times,
        quantiles: Quantiles,
    },
    Categories(CategoryTable),
    Texts {
        /// Different tokens of all texts.
        tokens: u64,
        /// Where the tokens are weighed by how rare they are.
        documents: Option<Documents>,
        options: TextOptions,
    },
}

/// What a column's state is to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    /// Ranks only where they are needed: they take 20 KB a column.
    Numbers {
        quantiles: bool,
    },
    Times,
    /// Categories with so many folds of target sums; none of them where rows are only counted.
    Categories {
        folds: Option<u8>,
        /// They need little room.
        few: bool,
    },
    Texts {
        options: TextOptions,
        /// Otherwise only the different texts are counted: the model takes no tokens.
        used: bool,
    },
}

/// What a piece adds, column by column.
enum Part {
    Numbers {
        moments: Moments,
        quantiles: Quantiles,
        distinct: Distinct,
        missing: u64,
    },
    Times {
        times: Times,
        quantiles: Quantiles,
        distinct: Distinct,
        missing: u64,
    },
    /// The category of each chosen row.
    Keys(Vec<u64>),
    Texts {
        /// Different tokens of all rows.
        tokens: u64,
        /// Where they are weighed: the places of the tokens of all rows, and how many each row has.
        places: Vec<u32>,
        lengths: Vec<u32>,
        distinct: Distinct,
        missing: u64,
    },
}

struct PieceFit {
    counts: RowCounts,
    /// Training rows of the chunk and their targets.
    rows: Vec<u32>,
    targets: Vec<f64>,
    parts: Vec<Part>,
}

impl Table {
    /// Streams the table once and fits the columns that feed the model, each as it wishes.
    pub(crate) fn fit(
        &self,
        wishes: &[Wish],
        options: &FitOptions,
        ledger: &Ledger,
        progress: &mut Progress,
    ) -> Result<Option<Fitted>> {
        let mut grant = ledger.holder("encoders").try_grant(0)?;
        // Training has all its columns.
        let columns: Vec<usize> = self.feature_columns.iter().flatten().copied().collect();
        // Counts of tokens are as large as was asked, whatever the data: they are granted before they are made. Of one
        // column after the other they become weights, which take as much.
        let mut weights = 0;
        for (wish, column) in wishes.iter().zip(&columns) {
            let counts = wish.documents_bytes();
            let more = counts.saturating_sub(weights);
            weights += more;
            grant
                .try_grow(counts + more)
                .map_err(|refused| no_room_for_tokens(refused, &self.reading.wanted[*column].name))?;
        }
        let many = |wish: &&Wish| matches!(wish, Wish::Categories { few: false, .. });
        let few = wishes
            .iter()
            .filter(|wish| matches!(wish, Wish::Categories { few: true, .. }))
            .count() as u64;
        // What columns with few categories leave is for the others.
        let small = FEW_BYTES.min(options.bytes / (2 * few.max(1)));
        let large = (options.bytes - few * small) / (wishes.iter().filter(many).count().max(1) as u64);
        let table_bytes = |wish: &Wish| match wish {
            Wish::Categories { few: true, .. } => small as usize,
            _ => large as usize,
        };
        let target = &self.encoders.target;
        let mut fitted = Fitted {
            counts: RowCounts::default(),
            pieces: 0,
            columns: wishes
                .iter()
                .map(|wish| wish.start(target, table_bytes(wish)))
                .collect(),
            target: Moments::default(),
            classes: vec![0; target.labels().len()],
            grant: None,
        };
        let mut stopped = false;
        self.chunks(
            &self.reading,
            options.threads,
            self.fit_bytes(),
            ledger,
            |place, chunk| self.fit_piece(wishes, &options.holdout, place, chunk),
            |chunk, piece, place| {
                let rows = piece.rows.len();
                let fits = fitted.columns.iter().zip(&columns);
                let needed =
                    |(fit, column): (&ColumnFit, &usize)| fit.would_need(rows, chunk.text_bytes(*column));
                let needed = weights + fits.map(needed).sum::<usize>() as u64;
                grant.try_grow(needed.saturating_sub(grant.bytes()))?;
                fitted.take_in(chunk, piece, &columns, place, options.seed);
                let next = progress(place.end(), fitted.counts.rows);
                stopped = next.is_break();
                Ok(next)
            },
        )?;
        if stopped {
            return Ok(None);
        }
        let held = weights + fitted.columns.iter().map(ColumnFit::bytes).sum::<usize>() as u64;
        grant.shrink(grant.bytes().saturating_sub(held));
        fitted.grant = Some(grant);
        Ok(Some(fitted))
    }

    /// What a piece amounts to before it is taken in.
    pub(crate) fn fit_bytes(&self) -> u64 {
        let rows = self.source.piece_size(&self.reading).rows;
        let column = |column: &TableColumn| match (column.judged.read, column.judged.role) {
            (Read::Text, Role::Text) => {
                let options = self.text_options(column);
                let tokens = match options.weigh {
                    // Those of all rows, in a vector that grows.
                    Weigh::Rarity => 4.0 + 6.0 * column.tokens(options.tokens),
                    Weigh::Count => 0.0,
                };
                SKETCH_BYTES + (rows as f64 * tokens) as u64
            }
            (Read::Text, _) => 8 * rows,
            _ => SKETCH_BYTES + (24 << 10).min(16 * rows),
        };
        let used = self.columns.iter().filter(|column| column.judged.role.is_used());
        // The chosen rows with their targets, and the numbers of one column at a time.
        24 * rows + used.map(column).sum::<u64>()
    }

    /// Sums up a chunk, on any thread.
    fn fit_piece(
        &self,
        wishes: &[Wish],
        holdout: &Holdout,
        place: &Place,
        chunk: &Chunk,
    ) -> Result<PieceFit> {
        let selected = self.select(place, chunk, holdout)?;
        let training = |held_out: &&bool| !**held_out;
        let keep = || selected.held_out.iter();
        let rows: Vec<u32> = selected
            .rows
            .iter()
            .zip(keep())
            .filter(|(_, out)| training(out))
            .map(|(row, _)| *row)
            .collect();
        let targets = selected
            .targets
            .iter()
            .zip(keep())
            .filter(|(_, out)| training(out))
            .map(|(y, _)| *y)
            .collect();
        let part = |(wish, &column): (&Wish, &usize)| wish.sum_up(chunk, column, &rows);
        let parts = wishes
            .iter()
            .zip(self.feature_columns.iter().flatten())
            .map(part)
            .collect();
        Ok(PieceFit {
            counts: selected.counts,
            rows,
            targets,
            parts,
        })
    }
}

impl Fitted {
    /// Takes in what a piece amounts to, in the order of the source.
    fn take_in(&mut self, chunk: &Chunk, piece: PieceFit, columns: &[usize], place: &Place, seed: u64) {
        self.counts.add(&piece.counts);
        self.pieces += 1;
        match self.classes.is_empty() {
            true => self.target.push_slice(&piece.targets),
            false => piece
                .targets
                .iter()
                .for_each(|class| self.classes[*class as usize] += 1),
        }
        let mut folds: Vec<u8> = Vec::new();
        let mut folds_of = 0;
        for ((fit, part), &column) in self.columns.iter_mut().zip(piece.parts).zip(columns) {
            match (&mut fit.values, part) {
                (
                    Values::Numbers { moments, quantiles },
                    Part::Numbers {
                        moments: more,
                        quantiles: later,
                        distinct,
                        missing,
                    },
                ) => {
                    moments.merge(&more);
                    quantiles.merge(&later);
                    fit.distinct.merge(&distinct);
                    fit.missing += missing;
                }
                (
                    Values::Times { times, quantiles },
                    Part::Times {
                        times: more,
                        quantiles: later,
                        distinct,
                        missing,
                    },
                ) => {
                    times.merge(&more);
                    quantiles.merge(&later);
                    fit.distinct.merge(&distinct);
                    fit.missing += missing;
                }
                (Values::Categories(table), Part::Keys(keys)) => {
                    let n_folds = table.shape().folds;
                    if n_folds > 1 && folds_of != n_folds {
                        folds_of = n_folds;
                        let key = |row: &u32| row_key(place, chunk.lines[*row as usize]);
                        folds = piece
                            .rows
                            .iter()
                            .map(|row| fold(key(row), seed, n_folds))
                            .collect();
                    }
                    let folds: &[u8] = if n_folds > 1 { &folds } else { &[] };
                    for key in &keys {
                        fit.missing += u64::from(*key == MISSING);
                        fit.distinct.insert(*key);
                    }
                    let name = |i: usize| chunk.text(column, piece.rows[i] as usize).unwrap_or_default();
                    table.add_rows(&keys, folds, &piece.targets, name);
                }
                (
                    Values::Texts {
                        tokens, documents, ..
                    },
                    Part::Texts {
                        tokens: more,
                        places,
                        lengths,
                        distinct,
                        missing,
                    },
                ) => {
                    *tokens += more;
                    let mut rest = places.as_slice();
                    for documents in documents.iter_mut() {
                        for length in &lengths {
                            let (row, later) = rest.split_at(*length as usize);
                            rest = later;
                            documents.push(row.iter().copied());
                        }
                    }
                    fit.distinct.merge(&distinct);
                    fit.missing += missing;
                }
                _ => unreachable!("a piece is summed up as the column wishes"),
            }
        }
    }
}

/// The refusal in the name of the column, for it can be asked to need less.
fn no_room_for_tokens(mut refused: Refused, column: &str) -> Error {
    let (Refused::TooLarge { holder, .. }
    | Refused::Exhausted { holder, .. }
    | Refused::Deadlock { holder, .. }
    | Refused::Closed { holder, .. }) = &mut refused;
    *holder = format!("column {column:?}");
    Error::Memory {
        what: "the counts of tokens (fewer bits and weight = \"tf\" need less)",
        source: Box::new(refused),
    }
}

impl Wish {
    /// What the counts of its tokens take.
    fn documents_bytes(&self) -> u64 {
        match self {
            Wish::Texts { options, .. } if self.weighs_tokens() => Documents::bytes_needed(options.bits),
            _ => 0,
        }
    }

    fn weighs_tokens(&self) -> bool {
        matches!(self, Wish::Texts { options, used: true } if options.weigh == Weigh::Rarity)
    }

    fn start(&self, target: &Target, table_bytes: usize) -> ColumnFit {
        let values = match self {
            Wish::Numbers { .. } => Values::Numbers {
                moments: Moments::default(),
                quantiles: Quantiles::default(),
            },
            Wish::Times => Values::Times {
                times: Times::default(),
                quantiles: Quantiles::default(),
            },
            Wish::Categories { folds, .. } => {
                let targets = match target.task() {
                    Task::Regression => Targets::Number,
                    Task::Binary | Task::Multiclass => Targets::Classes {
                        classes: target.labels().len() as u32,
                    },
                };
                let shape = folds.map_or(Shape::COUNT, |folds| Shape { folds, targets });
                Values::Categories(CategoryTable::with_capacity_bytes(shape, table_bytes))
            }
            Wish::Texts { options, .. } => Values::Texts {
                tokens: 0,
                documents: self.weighs_tokens().then(|| Documents::new(options.bits)),
                options: options.clone(),
            },
        };
        ColumnFit {
            missing: 0,
            distinct: Distinct::default(),
            values,
        }
    }

    /// What the chosen rows of a chunk amount to.
    fn sum_up(&self, chunk: &Chunk, column: usize, rows: &[u32]) -> Part {
        match self {
            Wish::Numbers { .. } | Wish::Times => {
                let numbers = chunk.numbers(column);
                let chosen: Vec<f64> = rows.iter().map(|row| numbers[*row as usize]).collect();
                let mut quantiles = Quantiles::default();
                let ranked = *self != (Wish::Numbers { quantiles: false });
                if ranked {
                    quantiles.push_slice(&chosen);
                }
                let mut distinct = Distinct::default();
                let mut missing = 0;
                for number in &chosen {
                    match number.is_nan() {
                        true => missing += 1,
                        false => distinct.insert(hash(&number.to_bits().to_le_bytes())),
                    }
                }
                if *self == Wish::Times {
                    let mut times = Times::default();
                    times.push_slice(&chosen);
                    return Part::Times {
                        times,
                        quantiles,
                        distinct,
                        missing,
                    };
                }
                let mut moments = Moments::default();
                moments.push_slice(&chosen);
                Part::Numbers {
                    moments,
                    quantiles,
                    distinct,
                    missing,
                }
            }
            Wish::Categories { .. } => {
                let key = |row: &u32| chunk.text(column, *row as usize).map_or(MISSING, hash);
                Part::Keys(rows.iter().map(key).collect())
            }
            Wish::Texts { options, used } => {
                let text = Text::fit(options, None);
                let mut scratch = TextScratch::default();
                let weighed = self.weighs_tokens();
                let (mut tokens, mut places, mut lengths) = (0, Vec::new(), Vec::new());
                let (mut distinct, mut missing) = (Distinct::default(), 0);
                for row in rows {
                    let found = match chunk.text(column, *row as usize) {
                        None => {
                            missing += 1;
                            &[][..]
                        }
                        Some(bytes) => {
                            distinct.insert(hash(bytes));
                            match used {
                                true => text.encode(bytes, &mut scratch),
                                false => &[][..],
                            }
                        }
                    };
                    tokens += found.len() as u64;
                    if weighed {
                        places.extend(found.iter().map(|(place, _)| *place));
                        lengths.push(found.len() as u32);
                    }
                }
                Part::Texts {
                    tokens,
                    places,
                    lengths,
                    distinct,
                    missing,
                }
            }
        }
    }
}

impl ColumnFit {
    /// The most bytes after so many more rows, with so many bytes of text in all.
    fn would_need(&self, more: usize, text_bytes: usize) -> usize {
        match &self.values {
            Values::Categories(table) => self.distinct.bytes() + table.would_need(more, text_bytes),
            _ => self.bytes(),
        }
    }

    fn bytes(&self) -> usize {
        let values = match &self.values {
            // A sketch grows to about this.
            Values::Numbers { .. } | Values::Times { .. } => 24 << 10,
            Values::Categories(table) => table.bytes(),
            Values::Texts { documents, .. } => documents.as_ref().map_or(0, Documents::bytes),
        };
        self.distinct.bytes() + values
    }
}
