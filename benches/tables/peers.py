"""The peers, each run in a process of its own: trains, predicts the test rows block by block, prints one JSON line.

peers.py NAME FOLDER OUT   reads the files of FOLDER and saves the predictions as OUT

`seconds` ends with the training; predicting is not counted. Settings are those with which the figures in the project's
issues were measured. The boosting peers read what `prepare` wrote, whose time and memory are reported apart.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np

STARTED = time.perf_counter()
HERE = pathlib.Path(__file__).parent
NUMBERS = [f"num{i}" for i in range(12)]
CATEGORIES = [f"cat{i}" for i in range(6)]
IDS = [f"id{i}" for i in range(3)]
THREADS = 2
BLOCK = 125_000


def since(started=STARTED):
    return time.perf_counter() - started


# Linear models from the raw CSV, one epoch.


def partial_fit(folder, out, with_text):
    """scikit-learn: pandas in blocks of 50,000 rows, categories and words hashed to 2^18, SGDClassifier.partial_fit."""
    import pandas as pd
    import scipy.sparse as sparse
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    words = CATEGORIES + IDS
    columns = ["target", *NUMBERS, *words] + (["text"] if with_text else [])
    hasher = FeatureHasher(2**18, input_type="string", alternate_sign=False)
    vectorizer = HashingVectorizer(n_features=2**18, norm=None, alternate_sign=False, lowercase=False)
    scaler = StandardScaler()
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, alpha=1e-7, random_state=0)

    def blocks(path):
        texts = {column: object for column in columns if column in words or column == "text"}
        return pd.read_csv(path, chunksize=50_000, usecols=columns, dtype=texts)

    def features(block, learn):
        numbers = block[NUMBERS].fillna(0).to_numpy(np.float32)
        if learn:
            scaler.partial_fit(numbers)
        numbers = np.clip(scaler.transform(numbers), -5, 5)
        tokens = zip(*[[f"{column}={value}" for value in block[column].tolist()] for column in words])
        parts = [sparse.csr_matrix(numbers), hasher.transform(tokens)]
        if with_text:
            parts.append(vectorizer.transform(block["text"]))
        return sparse.hstack(parts, format="csr")

    for block in blocks(folder / "train.csv"):
        model.partial_fit(features(block, True), block["target"].to_numpy(), classes=[0, 1])
    seconds = since()
    np.save(out, np.concatenate([model.predict_proba(features(block, False))[:, 1] for block in blocks(folder / "test.csv")]))
    return dict(seconds=seconds)


def vowpal(folder, out, piped):
    """Vowpal Wabbit with text. Its conversion of the CSV counts: before the training, or piped into it on another core."""
    import vowpalwabbit

    work = out.with_suffix(".vw")
    work.mkdir(exist_ok=True)
    train, test, model = work / "train.vw", work / "test.vw", work / "model"
    train.unlink(missing_ok=True)
    started = time.perf_counter()
    if piped:
        os.mkfifo(train)
    converter = to_vw(folder / "train.csv", train)
    if not piped:
        finish(converter)
    converted = since(started)
    vowpalwabbit.Workspace(d=str(train), loss_function="logistic", b=18, f=str(model), quiet=True).finish()
    finish(converter)
    seconds = since(started)
    finish(to_vw(folder / "test.csv", test))
    scores = work / "scores.txt"
    vowpalwabbit.Workspace(d=str(test), t=True, i=str(model), p=str(scores), link="logistic", quiet=True).finish()
    np.save(out, np.loadtxt(scores))
    shutil.rmtree(work)
    return dict(seconds=seconds) if piped else dict(seconds=seconds, conversion=converted, training=seconds - converted)


def to_vw(source, destination):
    """Starts the conversion. The shell opens the destination: here, a pipe would wait for its reader and block it."""
    awk = shutil.which("mawk") or "awk"
    return subprocess.Popen(["sh", "-c", 'exec "$0" -f "$1" -v TEXT=1 "$2" > "$3"', awk, HERE / "to_vw.awk", source, destination])


def finish(process):
    if process.wait() != 0:
        raise SystemExit(f"the conversion for Vowpal Wabbit ended with {process.returncode}")


# Boosted trees from the prepared Parquet: 100 of depth 6.


def prepare(folder, _out):
    """Number the small categories, encode the large ones by their target: two folds, smoothed by 20 rows, streamed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 600_000
    numbering = {column: {} for column in CATEGORIES + IDS}
    # column: the target's sum and the count of each value in either half of the rows
    sums, counts = ({column: np.zeros((2, size)) for column in IDS} for _ in range(2))

    def codes(column, values):
        values, known = values.dictionary_encode(), numbering[column]
        numbers = np.array([known.setdefault(value, len(known)) for value in values.dictionary.to_pylist()], np.int32)
        return numbers[values.indices.to_numpy(zero_copy_only=False)]

    def blocks(part, columns):
        row = 0
        for block in pq.ParquetFile(folder / f"{part}.parquet").iter_batches(BLOCK, columns=columns):
            yield np.arange(row, row + block.num_rows) % 2, block
            row += block.num_rows

    for fold, block in blocks("train", ["target", *IDS]):
        target = block.column("target").to_numpy()
        for column in IDS:
            code = codes(column, block.column(column))
            for half in (0, 1):
                mine = fold == half
                sums[column][half] += np.bincount(code[mine], target[mine], size)
                counts[column][half] += np.bincount(code[mine], minlength=size)
    rate = sums["id0"].sum() / counts["id0"].sum()
    for part in ("train", "test"):
        writer = None
        for fold, block in blocks(part, ["target", *NUMBERS, *CATEGORIES, *IDS]):
            columns = {"y": block.column("target").to_numpy().astype(np.float32)}
            for column in NUMBERS:
                columns[column] = block.column(column).to_numpy(zero_copy_only=False).astype(np.float32)
            for column in CATEGORIES:
                columns[column] = codes(column, block.column(column)).astype(np.float32)
            for column in IDS:
                code = codes(column, block.column(column))
                # A training row is encoded by the half that it is not in, so that it does not tell its own target.
                pick = lambda table: table[1 - fold, code] if part == "train" else table[0, code] + table[1, code]
                columns[column] = ((pick(sums[column]) + 20 * rate) / (pick(counts[column]) + 20)).astype(np.float32)
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / f"prepared-{part}.parquet", table.schema, compression="snappy")
            writer.write_table(table, row_group_size=BLOCK)
        writer.close()
    return dict(seconds=since())


def prepared(folder, part):
    """The prepared rows, block by block, as a matrix and its target."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(folder / f"prepared-{part}.parquet")
    names = [name for name in file.schema_arrow.names if name != "y"]
    for block in file.iter_batches(BLOCK):
        x = np.empty((block.num_rows, len(names)), np.float32)
        for place, name in enumerate(names):
            x[:, place] = block.column(name).to_numpy(zero_copy_only=False)
        yield x, block.column("y").to_numpy()


def whole(folder, part):
    """All prepared rows in memory, without a second copy."""
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(folder / f"prepared-{part}.parquet").metadata.num_rows
    x, y, row = None, np.empty(rows, np.float32), 0
    for block, target in prepared(folder, part):
        x = np.empty((rows, block.shape[1]), np.float32) if x is None else x
        x[row : row + len(target)], y[row : row + len(target)] = block, target
        row += len(target)
    return x, y


def boosted(folder, out, build, train):
    """Times reading and building apart from training; `train` gives the function that predicts."""
    data = build()
    built = since()
    predict = train(data)
    seconds = since()
    np.save(out, np.concatenate([predict(x) for x, _ in prepared(folder, "test")]))
    return dict(seconds=seconds, building=built, training=seconds - built)


def xgboost(folder, out, external):
    import xgboost as xgb

    settings = dict(objective="binary:logistic", max_depth=6, eta=0.1, tree_method="hist", nthread=THREADS, max_bin=256)

    class Blocks(xgb.DataIter):
        def __init__(self):
            self.blocks = None
            super().__init__(cache_prefix=str(out.with_suffix(".cache")))

        def next(self, take):
            self.blocks = self.blocks or prepared(folder, "train")
            for x, y in self.blocks:
                take(data=x, label=y)
                return 1
            return 0

        def reset(self):
            self.blocks = None

    def build():
        if external:
            return xgb.ExtMemQuantileDMatrix(Blocks(), max_bin=256)
        x, y = whole(folder, "train")
        return xgb.QuantileDMatrix(x, y, max_bin=256)

    return boosted(folder, out, build, lambda data: xgb.train(settings, data, 100).inplace_predict)


def lightgbm(folder, out):
    import lightgbm as lgb

    settings = dict(objective="binary", max_depth=6, num_leaves=63, learning_rate=0.1, num_threads=THREADS, max_bin=255, verbose=-1)

    def build():
        x, y = whole(folder, "train")
        return lgb.Dataset(x, y, free_raw_data=True).construct()

    return boosted(folder, out, build, lambda data: lgb.train(settings, data, 100).predict)


PEERS = {
    "sgd_text": lambda folder, out: partial_fit(folder, out, with_text=True),
    "sgd": lambda folder, out: partial_fit(folder, out, with_text=False),
    "vw_text": lambda folder, out: vowpal(folder, out, piped=False),
    "vw_text_piped": lambda folder, out: vowpal(folder, out, piped=True),
    "prepare": prepare,
    "xgboost_memory": lambda folder, out: xgboost(folder, out, external=False),
    "xgboost_external": lambda folder, out: xgboost(folder, out, external=True),
    "lightgbm_memory": lightgbm,
}

if __name__ == "__main__":
    name, folder, out = sys.argv[1:]
    print(json.dumps(PEERS[name](pathlib.Path(folder), pathlib.Path(out))))
