"""Scores predictions against the target of a test file, for everyone the same way: prints one JSON line.

judge.py TASK TEST TARGET PREDICTIONS

PREDICTIONS is a .npy file (several columns: the mean of their scores) or what `tidegate predict` wrote as CSV.
"""

import json
import sys

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score


def binary(y, p):
    p = np.clip(p, 1e-7, 1 - 1e-7)
    loss = -np.mean(np.where(y == 1, np.log(p), np.log1p(-p)))
    return dict(log_loss=loss, auc=roc_auc_score(y, p), accuracy=np.mean((p >= 0.5) == (y == 1)))


def regression(y, p):
    squares = np.mean((y - p) ** 2)
    return dict(rmse=np.sqrt(squares), r2=1 - squares / np.var(y))


def predicted(path):
    if path.endswith(".npy"):
        values = np.load(path).astype(np.float64)
        return values if values.ndim == 2 else values[:, None]
    rows = pd.read_csv(path)
    return rows[["probability" if "probability" in rows else "prediction"]].to_numpy()


if __name__ == "__main__":
    task, test, target, predictions = sys.argv[1:]
    read = pd.read_csv(test, usecols=[target]) if test.endswith(".csv") else pd.read_parquet(test, columns=[target])
    y = read[target].to_numpy()
    scores = [{"binary": binary, "regression": regression}[task](y, column) for column in predicted(predictions).T]
    print(json.dumps({name: float(np.mean([score[name] for score in scores])) for name in scores[0]}))
