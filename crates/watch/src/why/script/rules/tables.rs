//! Tables that are read whole, and columns of them that nobody uses.

use super::pieces::{Item, Pieces, assigned_name, in_pieces, spelled_or_imported};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, text_with};
use crate::why::script::origin::{Reading, argument, has_hidden_arguments, keyword, string};
use crate::why::script::trains;
use crate::why::script::tree::Node;

/// Rows in a piece: large enough that the loop costs nothing, small enough for any machine.
const ROWS: &str = "100_000";

/// How a library reads a table piece by piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `chunksize=`
    Chunks,
    /// `lines=True, chunksize=`
    JsonLines,
    /// `pyarrow.parquet.ParquetFile(…).iter_batches()`
    RowGroups,
    /// `openpyxl`, row by row.
    Sheet,
    /// A lazy frame of Polars.
    Lazy,
}

const READERS: [(&str, Way); 15] = [
    ("pandas.read_csv", Way::Chunks),
    ("pandas.read_table", Way::Chunks),
    ("pandas.read_fwf", Way::Chunks),
    ("pandas.read_sql", Way::Chunks),
    ("pandas.read_sql_query", Way::Chunks),
    ("pandas.read_sql_table", Way::Chunks),
    ("pandas.read_stata", Way::Chunks),
    ("pandas.read_sas", Way::Chunks),
    ("pandas.read_json", Way::JsonLines),
    ("pandas.read_parquet", Way::RowGroups),
    ("pandas.read_excel", Way::Sheet),
    ("polars.read_csv", Way::Lazy),
    ("polars.read_parquet", Way::Lazy),
    ("polars.read_ndjson", Way::Lazy),
    ("polars.read_ipc", Way::Lazy),
];

/// Options with which it is not the whole table.
const BOUNDED: [&str; 5] = ["chunksize", "iterator", "nrows", "n_rows", "row_groups"];

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let mut drafts = Vec::new();
    for call in reading.script.all("call") {
        if drafts.len() >= MOST {
            break;
        }
        let called = reading.called(call);
        let Some((_, way)) = READERS.iter().find(|(name, _)| called.as_deref() == Some(name)) else {
            continue;
        };
        let is_bounded = BOUNDED.iter().any(|option| keyword(call, option).is_some());
        if is_bounded || has_hidden_arguments(call) {
            continue;
        }
        let command = trains::command(reading, call);
        let change = match way {
            Way::Lazy => lazily(reading, call),
            _ => pieces(reading, call, *way).and_then(|pieces| in_pieces(reading, call, &pieces)),
        };
        if let Some(change) = change {
            drafts.push(Draft {
                kind: FindingKind::WholeTable,
                at: call,
                change,
                title: title(call, *way),
                why: why(call, *way),
                saving: Saving::AllButPiece,
                grows_at: Vec::new(),
                command: command.clone(),
            });
        }
        drafts.extend(unused_columns(reading, call, *way, command));
    }
    drafts
}

fn title(call: Node<'_>, way: Way) -> String {
    let path = argument(call, 0, "filepath_or_buffer").and_then(string);
    let file = path
        .filter(|_| way != Way::Chunks || !path.is_some_and(|path| path.contains(char::is_whitespace)))
        .and_then(|path| path.rsplit('/').next())
        .filter(|name| !name.is_empty())
        .unwrap_or("the table");
    match way {
        Way::Lazy => format!("Scan {file} instead of reading it"),
        Way::Sheet => format!("Read {file} row by row"),
        _ => format!("Read {file} in pieces"),
    }
}

fn why(call: Node<'_>, way: Way) -> String {
    let function = call.field("function").map_or("", Node::text);
    let pieces = match way {
        Way::Chunks => "With `chunksize` one piece of 100,000 rows is in memory at a time.",
        Way::JsonLines => "A file with one object on each line can be read with `lines=True, chunksize=…`.",
        Way::RowGroups => "Parquet is read in batches by pyarrow; `columns=[…]` reads only what is used.",
        Way::Sheet => {
            "openpyxl reads a sheet row by row with `read_only=True`; saved as CSV it is read in chunks."
        }
        Way::Lazy => {
            "A lazy frame reads only the columns and rows that the query asks for, when it is collected."
        }
    };
    let smaller = match (way, keyword(call, "usecols"), keyword(call, "dtype")) {
        (Way::Chunks, None, None) => {
            " Less, but easier: `usecols=[…]` for the columns that are used, `dtype=` with float32 and category."
        }
        (Way::Chunks, Some(_), None) => " Less, but easier: `dtype=` with float32 and category.",
        (Way::Chunks, None, Some(_)) => " Less, but easier: `usecols=[…]` for the columns that are used.",
        _ => "",
    };
    format!("`{function}` holds the whole table, and parts of it twice while it reads. {pieces}{smaller}")
}

fn pieces<'s>(reading: &Reading<'s>, call: Node<'s>, way: Way) -> Option<Pieces> {
    let path = argument(call, 0, "path").map(|path| path.text());
    let (imports, iterable, item) = match way {
        Way::Chunks | Way::JsonLines => {
            let lines = match way == Way::JsonLines && keyword(call, "lines").is_none() {
                true => "lines=True, ",
                false => "",
            };
            let edit = Edit::add_argument(call, &format!("{lines}chunksize={ROWS}"))?;
            (Vec::new(), text_with(call, vec![edit]), Item::Alike)
        }
        Way::RowGroups => {
            let import = "import pyarrow.parquet as pq";
            let (open, imports) = spelled_or_imported(reading, "pyarrow.parquet.ParquetFile", import);
            let columns = keyword(call, "columns").map(|columns| format!(", columns={}", columns.text()));
            let columns = columns.unwrap_or_default();
            let batches = format!("{open}({}).iter_batches(batch_size={ROWS}{columns})", path?);
            let (name, by) = ("batch", "to_pandas()");
            (imports, batches, Item::Made { name, by })
        }
        Way::Sheet => {
            let (open, imports) = spelled_or_imported(reading, "openpyxl.load_workbook", "import openpyxl");
            let rows = format!(
                "{open}({}, read_only=True).active.iter_rows(values_only=True)",
                path?
            );
            (imports, rows, Item::Other { name: "row" })
        }
        Way::Lazy => return None,
    };
    Some(Pieces {
        imports,
        iterable,
        item,
        size: "100,000 rows",
    })
}

/// Methods that a lazy frame has too.
const LAZY_METHODS: [&str; 24] = [
    "agg",
    "cast",
    "drop",
    "drop_nulls",
    "explode",
    "fill_null",
    "filter",
    "group_by",
    "groupby",
    "head",
    "join",
    "limit",
    "rename",
    "reverse",
    "select",
    "slice",
    "sort",
    "tail",
    "top_k",
    "unique",
    "unnest",
    "unpivot",
    "with_columns",
    "with_row_index",
];

/// `read_csv` → `scan_csv`, and what is asked of the table right away stays lazy with it.
fn lazily<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Change> {
    let statement = call.statement();
    if !statement.is(&["expression_statement", "return_statement"]) {
        return None;
    }
    let function = call.field("function")?;
    let scan = reading
        .called(call)?
        .rsplit('.')
        .next()?
        .replace("read_", "scan_");
    let (name, imports) = match function.kind() {
        "attribute" => (function.field("attribute")?, Vec::new()),
        _ => (function, vec![format!("from polars import {scan}")]),
    };
    let mut end = call;
    while let Some(attribute) = end.parent().filter(|parent| parent.kind() == "attribute")
        && LAZY_METHODS.contains(&attribute.field("attribute")?.text())
        && let Some(next) = attribute.parent().filter(|parent| parent.kind() == "call")
    {
        end = next;
    }
    let is_kept = end
        .parent()
        .is_some_and(|parent| parent.is(&["assignment", "return_statement"]));
    let collect = match end == call && is_kept {
        true => Edit::insert(statement.end(), "  # and in the end .collect() what is left"),
        false => Edit::insert(end.end(), ".collect()"),
    };
    let change = Change::edit(statement, statement, vec![Edit::replace(name, scan), collect]);
    Some(change.led_by(&imports))
}

/// Longer lists are no easy remedy.
const MOST_COLUMNS: usize = 12;

/// A read whose frame is only ever asked for columns by their names.
fn unused_columns<'s>(
    reading: &Reading<'s>,
    call: Node<'s>,
    way: Way,
    command: Option<String>,
) -> Option<Draft<'s>> {
    let called = reading.called(call)?;
    let option = match way {
        Way::Chunks | Way::Sheet if !called.contains("sql") && !called.contains("sas") => "usecols",
        Way::RowGroups => "columns",
        _ => return None,
    };
    let name = assigned_name(call)?;
    if keyword(call, option).is_some() {
        return None;
    }
    let columns = columns_used(reading, call, name)?;
    if columns.is_empty() || columns.len() > MOST_COLUMNS {
        return None;
    }
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    let quoted = quoted.join(", ");
    let statement = call.statement();
    let edit = Edit::add_argument(call, &format!("{option}=[{quoted}]"))?;
    Some(Draft {
        kind: FindingKind::UnusedColumns,
        at: call,
        change: Change::edit(statement, statement, vec![edit]),
        title: match columns.len() {
            1 => "Read only the one column that is used".into(),
            number => format!("Read only the {number} columns that are used"),
        },
        why: format!(
            "Of `{name}` this script uses {quoted} and nothing else; `{option}` leaves the rest in the file."
        ),
        saving: Saving::Unknown,
        grows_at: Vec::new(),
        command,
    })
}

/// The columns of a frame that are used, each once; `None` where it is used in another way too.
fn columns_used<'s>(reading: &Reading<'s>, call: Node<'s>, name: &str) -> Option<Vec<&'s str>> {
    let assigned = call.parent()?.field("left")?;
    let mut columns: Vec<&str> = Vec::new();
    for used in reading.script.named(name).filter(|node| *node != assigned) {
        let parent = used.parent()?;
        let is_other =
            used.role() == "attribute" || (used.role() == "name" && parent.kind() == "keyword_argument");
        if is_other {
            continue;
        }
        let is_len = || {
            let call = parent.parent().filter(|_| parent.kind() == "argument_list");
            call.and_then(|call| call.field("function"))
                .map_or("", Node::text)
                == "len"
        };
        match parent.kind() {
            _ if used.scope() != call.scope() => return None,
            "subscript" if used.role() == "value" && !is_stored(parent) => {
                columns.extend(column_names(parent)?);
            }
            _ if is_len() => {}
            _ => return None,
        }
    }
    let mut seen = std::collections::HashSet::new();
    columns.retain(|column| seen.insert(*column));
    Some(columns)
}

/// Whether something is assigned to it, or it is deleted.
fn is_stored(node: Node<'_>) -> bool {
    let parent = node.parent().map_or("", Node::kind);
    node.role() == "left" || matches!(parent, "delete_statement" | "pattern_list" | "tuple_pattern")
}

/// The columns that `frame["a"]` or `frame[["a", "b"]]` names.
fn column_names(subscript: Node<'_>) -> Option<Vec<&str>> {
    let index = subscript.field("subscript")?;
    let names: Option<Vec<&str>> = match index.kind() {
        "string" => string(index).map(|name| vec![name]),
        "list" => index.children().map(string).collect(),
        _ => None,
    };
    names.filter(|names| names.iter().all(|name| !name.contains(['"', '\\'])))
}
