"""The peers, each run in a process of its own: prints one JSON line."""

import json
import resource
import sys
import time

FEATURES = [f"x{i}" for i in range(12)]
CHUNK = 200_000


def log_loss(y, p):
    import numpy as np

    p = np.clip(p, 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log(1 - p))))


def partial_fit(train, test):
    """pandas in chunks, scikit-learn's SGDClassifier: one epoch, scaled by the first chunk."""
    import pandas as pd
    from sklearn.linear_model import SGDClassifier

    started = time.perf_counter()
    model, mean, deviation, rows = SGDClassifier(loss="log_loss", random_state=7), None, None, 0
    for chunk in pd.read_csv(train, chunksize=CHUNK):
        x = chunk[FEATURES]
        if mean is None:
            mean, deviation = x.mean(), x.std()
        model.partial_fit(((x - mean) / deviation).fillna(0.0).to_numpy(), chunk["y"].to_numpy(), classes=[0, 1])
        rows += len(chunk)
    seconds = time.perf_counter() - started
    held = pd.read_csv(test)
    p = model.predict_proba(((held[FEATURES] - mean) / deviation).fillna(0.0).to_numpy())[:, 1]
    return dict(rows=rows, seconds=seconds, log_loss=log_loss(held["y"].to_numpy(), p))


def polars_mean(train, _test):
    """Polars, streaming: the mean of the same columns, nothing learned."""
    import polars as pl

    started = time.perf_counter()
    means = pl.scan_csv(train).select(pl.len(), *[pl.col(c).mean() for c in FEATURES], pl.col("y").mean().alias("y"))
    rows = means.collect(engine="streaming").row(0)[0]
    return dict(rows=rows, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    result = {"partial_fit": partial_fit, "polars_mean": polars_mean}[sys.argv[1]](*sys.argv[2:4])
    result["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(result))
