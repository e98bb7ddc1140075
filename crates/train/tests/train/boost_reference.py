"""Prints what scikit-learn's HistGradientBoosting makes of the problems of `boost_data.rs`, which are built here
by the same formulas. The figures stand in `boost_fit.rs`.

    python boost_reference.py
"""
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

U = np.uint64


def mix(x):
    with np.errstate(over="ignore"):
        x = x + U(0x9E3779B97F4A7C15)
        x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
        return x ^ (x >> U(31))


def uniform(seed, i):
    return (mix((U(seed) << U(32)) + i.astype(U)) >> U(11)).astype(float) * 2.0**-53


def normal(seed, i):
    return (sum(uniform(seed, i * 4 + k) for k in range(4)) - 2.0) * np.sqrt(3.0)


ROWS, FEATURES = 20_000, 8
rows = np.arange(ROWS)
x = uniform(60, np.arange(ROWS * FEATURES)).reshape(ROWS, FEATURES).astype(np.float32)
missing = uniform(61, rows) < 0.2
v = x.astype(float)
signal = 2 * np.sin(6 * v[:, 0]) + 8 * (v[:, 1] - 0.5) * (v[:, 2] - 0.5) + 1.5 * (v[:, 3] > 0.6) + v[:, 4] ** 2
signal += np.where(missing, 1.0, v[:, 7])
x[missing, 7] = np.nan
noise = normal(62, rows)
held_out = rows % 5 == 0
targets = {
    "number": signal + 0.5 * noise,
    "lognormal": np.exp(signal + 1.5 * noise),
    "two": (uniform(63, rows) < 1 / (1 + np.exp(-2 * (signal - 1.5)))).astype(float),
    "three": (signal + 0.5 * noise > 0.5).astype(float) + (signal + 0.5 * noise > 2.5),
}
options = dict(max_iter=100, learning_rate=0.1, max_depth=6, max_leaf_nodes=None, l2_regularization=1.0,
               min_samples_leaf=1, max_bins=255, early_stopping=False)
for name, y in targets.items():
    kind = HistGradientBoostingRegressor if name in ("number", "lognormal") else HistGradientBoostingClassifier
    model = kind(**options).fit(x[~held_out], y[~held_out])
    if kind is HistGradientBoostingRegressor:
        print(name, "rmse", np.sqrt(np.mean((model.predict(x[held_out]) - y[held_out]) ** 2)))
    else:
        print(name, "log_loss", log_loss(y[held_out], model.predict_proba(x[held_out])))
