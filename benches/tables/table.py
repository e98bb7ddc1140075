"""The large made-up table, written once as CSV and Parquet, a training part and a test part of each.

table.py ROWS FOLDER   writes train.csv, test.csv, train.parquet and test.parquet; the last tenth of the rows is the test

A binary target, 12 numbers of which two are now and then missing, 6 small and 3 large categories, and a text of eight
words. What is drawn, in which order and with which seed is that of the table with which the peers were first measured,
so that figures stay comparable: 8,500,000 rows are the same rows.
"""

import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

BLOCK = 500_000
ROW_GROUP = 125_000
SMALL = [5, 7, 12, 20, 50, 100]
LARGE = [100_000, 200_000, 500_000]
WORDS = 5_000


class World:
    """What every row is drawn from: the names, the words and what each of them does to the target."""

    def __init__(self, rng):
        self.small_names = [np.array([f"c{j}_{i:02d}" for i in range(size)]) for j, size in enumerate(SMALL)]
        self.large_names = [np.array([f"{(i * 2654435761 + j * 97) % (1 << 32):08x}" for i in range(size)]) for j, size in enumerate(LARGE)]
        self.small_effects = [rng.normal(0, 0.35, size) for size in SMALL]
        self.large_effects = [rng.normal(0, 0.6, size) for size in LARGE]
        self.weights = rng.normal(0, 0.25, 12)
        letters = list("abcdefghijklmnopqrstuvwxyz")
        self.words = np.array(["".join(rng.choice(letters, rng.integers(3, 9))) for _ in range(WORDS)])
        self.word_effects = rng.normal(0, 0.15, WORDS)
        frequency = 1 / np.arange(1, WORDS + 1) ** 0.9
        self.word_frequency = np.cumsum(frequency / frequency.sum())

    def rows(self, rng, count):
        """The next rows as a table. The order of the draws is part of the data."""
        x = rng.normal(0, 1, (count, 12))
        z = x.copy()
        x[:, 3] = np.exp(x[:, 3])
        x[:, 7] = np.abs(x[:, 7]) * 100
        z[:, 3], z[:, 7] = np.log(x[:, 3]), x[:, 7] / 100 - 0.8
        small = [rng.integers(0, size, count) for size in SMALL]
        large = [skewed(rng, size, count) for size in LARGE]
        words = np.searchsorted(self.word_frequency, rng.random((count, 8))).clip(0, WORDS - 1)
        score = z @ self.weights + sum(effect[i] for effect, i in zip(self.small_effects, small))
        score = score + sum(effect[i] for effect, i in zip(self.large_effects, large)) + self.word_effects[words].sum(1)
        # What a linear model cannot find and a tree can.
        score = score + 0.8 * z[:, 0] * z[:, 1] + 0.5 * (z[:, 2] > 0.5) * (small[0] == 2) - 0.4 * z[:, 5] ** 2 + 0.3
        target = (rng.random(count) < 1 / (1 + np.exp(-score))).astype(np.int8)
        missing = rng.random((count, 2)) < 0.05
        x = np.round(x, 5)
        columns = {"target": pa.array(target)}
        for j in range(12):
            columns[f"num{j}"] = pa.array(x[:, j], mask=missing[:, j - 10] if j >= 10 else None)
        columns |= {f"cat{j}": pa.array(names[i]) for j, (names, i) in enumerate(zip(self.small_names, small))}
        columns |= {f"id{j}": pa.array(names[i]) for j, (names, i) in enumerate(zip(self.large_names, large))}
        columns["text"] = pa.array([" ".join(row) for row in self.words[words].tolist()])
        return pa.table(columns)


def skewed(rng, size, count):
    """Numbers below `size`, small ones far more often."""
    return np.minimum((size ** rng.random(count) - 1) / (size - 1) * size, size - 1).astype(np.int64)


class Writer:
    """One part of the table, as CSV and as Parquet."""

    def __init__(self, folder, name, schema):
        self.csv = pyarrow.csv.CSVWriter(folder / f"{name}.csv", schema, write_options=pyarrow.csv.WriteOptions(quoting_style="needed"))
        self.parquet = pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="snappy")

    def write(self, table):
        if table.num_rows:
            self.csv.write_table(table)
            self.parquet.write_table(table, row_group_size=ROW_GROUP)

    def close(self):
        self.csv.close()
        self.parquet.close()


def write(rows, folder):
    """Under another name until it is whole."""
    part = folder.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    world, writers, done = World(rng), None, 0
    training = rows - rows // 10
    while done < rows:
        table = world.rows(rng, min(BLOCK, rows - done))
        writers = writers or [Writer(part, name, table.schema) for name in ("train", "test")]
        cut = min(max(training - done, 0), table.num_rows)
        writers[0].write(table.slice(0, cut))
        writers[1].write(table.slice(cut))
        done += table.num_rows
    for writer in writers:
        writer.close()
    part.rename(folder)


if __name__ == "__main__":
    write(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
