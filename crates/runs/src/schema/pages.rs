//! What thousands of runs and millions of metrics need to be shown by page.

/// The texts of a run that a search goes through, one a line: no word goes across two of them. `$run` names its row.
/// What is longer than some screens is a program on a command line, and is cut.
macro_rules! searched {
    ($run:literal) => {
        concat!(
            "substr(",
            $run,
            "id || coalesce(char(10) || ",
            $run,
            "name, '') || coalesce(char(10) || ",
            $run,
            "model, '') || coalesce(char(10) || ",
            $run,
            "data, '') || coalesce(char(10) || ",
            $run,
            "target, '') || coalesce(char(10) || ",
            $run,
            "verdict, '') || coalesce(char(10) || ",
            $run,
            "error, '') || char(10) || CASE WHEN json_valid(",
            $run,
            "command) THEN coalesce((SELECT group_concat(value, char(10)) FROM json_each(",
            $run,
            "command)), '') ELSE ",
            $run,
            "command END, 1, 16384)",
        )
    };
}

/// The same of a row that no index knows: in a home of an earlier version that cannot be written.
pub(crate) const SEARCHED: &str = searched!("");

/// So many metrics of a run, whatever their names, are one block.
pub(crate) const BLOCK: i64 = 256;

/// An index for each order of a list of runs, and one of all groups of three letters for searches.
///
/// The metrics of a run lie together, numbered from 1 as they came, so that a page of them is one piece of the file.
/// Of each block of 256 numbers and each name, `metric_blocks` holds the smallest, the largest, and the first that was
/// no finite number: the curve of a million values is drawn from those.
pub(super) const V4: &str = concat!(
    "
CREATE INDEX runs_kind ON runs (kind);
CREATE INDEX runs_by_created ON runs (seq);
CREATE INDEX runs_by_name ON runs (name COLLATE NOCASE);
CREATE INDEX runs_by_status ON runs (
    CASE status WHEN 'starting' THEN 0 WHEN 'running' THEN 1 WHEN 'done' THEN 2 WHEN 'failed' THEN 3 ELSE 4 END
);
CREATE INDEX runs_by_model ON runs (model COLLATE NOCASE);
CREATE INDEX runs_by_duration ON runs (CASE WHEN ended_ms >= started_ms THEN ended_ms - started_ms END);
CREATE INDEX runs_by_peak ON runs (peak_bytes);
CREATE INDEX runs_by_share ON runs (CAST(peak_bytes AS REAL) / budget_bytes);
CREATE INDEX runs_by_metric ON runs (metric_value);
CREATE INDEX runs_by_plan_error ON runs (
    CASE WHEN status = 'done' THEN (CAST(needs_bytes AS REAL) - peak_bytes) / peak_bytes END
);

CREATE VIRTUAL TABLE runs_text USING fts5 (text, tokenize = 'trigram');
INSERT INTO runs_text (rowid, text) SELECT seq, ",
    searched!(""),
    " FROM runs;
CREATE TRIGGER runs_text_insert AFTER INSERT ON runs BEGIN
    INSERT INTO runs_text (rowid, text) VALUES (new.seq, ",
    searched!("new."),
    ");
END;
CREATE TRIGGER runs_text_update AFTER UPDATE OF id, name, model, data, target, verdict, error, command ON runs
WHEN (old.id, old.name, old.model, old.data, old.target, old.verdict, old.error, old.command)
    IS NOT (new.id, new.name, new.model, new.data, new.target, new.verdict, new.error, new.command) BEGIN
    UPDATE runs_text SET text = ",
    searched!("new."),
    " WHERE rowid = new.seq;
END;
CREATE TRIGGER runs_text_delete AFTER DELETE ON runs BEGIN
    DELETE FROM runs_text WHERE rowid = old.seq;
END;

ALTER TABLE metrics RENAME TO metrics_before;
CREATE TABLE metrics (
    run   TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    step  INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value REAL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE metric_blocks (
    run      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    block    INTEGER NOT NULL,
    name     TEXT NOT NULL,
    low      REAL,
    low_seq  INTEGER,
    high     REAL,
    high_seq INTEGER,
    gap_seq  INTEGER,
    PRIMARY KEY (run, block, name)
) WITHOUT ROWID;
CREATE TRIGGER metrics_finite AFTER INSERT ON metrics WHEN abs(new.value) < 9e999 BEGIN
    INSERT INTO metric_blocks (run, block, name, low, low_seq, high, high_seq)
    VALUES (new.run, (new.seq - 1) / 256, new.name, new.value, new.seq, new.value, new.seq)
    ON CONFLICT (run, block, name) DO UPDATE SET
        low = min(coalesce(low, excluded.low), excluded.low),
        low_seq = CASE WHEN low <= excluded.low THEN low_seq ELSE excluded.low_seq END,
        high = max(coalesce(high, excluded.high), excluded.high),
        high_seq = CASE WHEN high >= excluded.high THEN high_seq ELSE excluded.high_seq END;
END;
CREATE TRIGGER metrics_gap AFTER INSERT ON metrics WHEN (abs(new.value) < 9e999) IS NOT TRUE BEGIN
    INSERT INTO metric_blocks (run, block, name, gap_seq)
    VALUES (new.run, (new.seq - 1) / 256, new.name, new.seq)
    ON CONFLICT (run, block, name) DO UPDATE SET gap_seq = coalesce(gap_seq, excluded.gap_seq);
END;
INSERT INTO metrics (run, seq, epoch, step, name, value)
SELECT run, row_number() OVER (PARTITION BY run ORDER BY seq), epoch, step, name, value FROM metrics_before
ORDER BY run, seq;
DROP TABLE metrics_before;
"
);
