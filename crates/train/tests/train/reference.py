"""Prints what scikit-learn makes of the tables of `tables.rs`, which are built here by the same formulas.

    python reference.py [folder of real data] > expected.txt

Columns are standardised by the moments of all rows, as the sample of a small file does, and the models
learn from the rows that Tidegate does not hold out.
"""
import os
import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import f1_score, log_loss, mean_squared_error, r2_score, roc_auc_score

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
    total = sum(uniform(seed, i * 4 + k) for k in range(4))
    return (total - 2.0) * np.sqrt(3.0)


def held_out(lines, share=0.1, seed=1):
    with np.errstate(over="ignore"):
        return mix(lines.astype(U) + mix(np.array([seed], U))) < U(int(share * 2.0**64))


def grid(seed, rows, columns):
    return normal(seed, np.arange(rows * columns)).reshape(rows, columns)


def weight(j):
    return ((j * 7) % 5 - 2) / 2


def targets(seed, g, two, noise=0.5):
    margin = sum(weight(j) * g[:, j] for j in range(g.shape[1]))
    rows = np.arange(len(g))
    if two:
        return (uniform(seed + 2, rows) < 1 / (1 + np.exp(-margin))).astype(float)
    return margin + noise * normal(seed + 1, rows)


def plain(two):
    g = grid(10, 3000, 5)
    x = np.column_stack([10 * j + (j + 1) * g[:, j] for j in range(5)])
    return x, targets(10, g, two)


def by_target(two):
    g = grid(20, 60000, 4)
    y = targets(20, g, two)
    order = np.argsort(y, kind="stable")
    return g[order], y[order]


def separable():
    g = grid(30, 3000, 3)
    return g, (g[:, 0] - g[:, 2] > 0).astype(float)


def collinear(two):
    g = grid(40, 3000, 3)
    x = np.column_stack([g[:, 0], g[:, 1], g[:, 0], g[:, 0] + g[:, 1], g[:, 2]])
    return x, targets(40, g, two)


def constant(two):
    g = grid(50, 3000, 3)
    return np.column_stack([g, np.full(3000, 7.0)]), targets(50, g, two)


def extreme(two):
    g = grid(60, 3000, 4)
    x = np.column_stack([g[:, 0] * 1e-9, g[:, 1] * 1e9, g[:, 2], 1e6 + g[:, 3]])
    return x, targets(60, g, two)


def wide(columns, two, rows=20000):
    u = uniform(70 + columns, np.arange(rows * columns)).reshape(rows, columns)
    g = (u * 2 - 1) * np.sqrt(3.0)
    x = g.copy()
    for j in range(2, columns, 3):
        x[:, j] = 0.8 * g[:, j - 1] + 0.6 * g[:, j]
    margin = sum(weight(j) * g[:, j] for j in range(columns)) / np.sqrt(columns) * 2
    i = np.arange(rows)
    if two:
        return np.round(x, 2), (uniform(5, i) < 1 / (1 + np.exp(-margin))).astype(float)
    return np.round(x, 2), margin + 0.5 * normal(6, i)


def blobs(rows=6000, noise=0):
    """Rows around the corners of a square, the third class rare, and columns that say nothing."""
    i = np.arange(rows)
    u = uniform(80, i)
    y = np.where(u < 0.4, 0, np.where(u < 0.7, 1, np.where(u < 0.75, 2, 3)))
    g = grid(81, rows, 3)
    x = np.column_stack([g[:, 0] + 1.5 * (y % 2), g[:, 1] + 1.5 * (y // 2), g[:, 2]])
    x = np.column_stack([x, grid(82, rows, noise)]) if noise else x
    return np.round(x, 6), y


def standardised(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def penalised():
    """Penalties that give zeros, and classes that count the same."""
    for two in (False, True):
        x, y = plain(two)
        z, held = standardised(np.round(x, 6)), held_out(np.arange(len(y)) + 2)
        if two:
            # Tidegate sums the loss: l1 = 60 is C = 1 / 60.
            fitted = LogisticRegression(l1_ratio=1.0, C=1 / 60, solver="saga", tol=1e-10, max_iter=100000)
            fitted.fit(z[~held], y[~held])
            weights = np.append(fitted.coef_[0], fitted.intercept_)
        else:
            # The target is standardised too; Lasso takes the mean of the loss.
            t = (y - y.mean()) / y.std(ddof=1)
            fitted = Lasso(alpha=300 / (~held).sum(), tol=1e-12, max_iter=100000).fit(z[~held], t[~held])
            weights = np.append(fitted.coef_, fitted.intercept_)
        print(f"lasso_{'two' if two else 'number'} weights", " ".join(repr(float(w)) for w in weights))
    x, y = wide(300, False)
    z, t, held = standardised(x), (y - y.mean()) / y.std(ddof=1), held_out(np.arange(len(y)) + 2)
    fitted = Lasso(alpha=50 / (~held).sum(), tol=1e-8).fit(z[~held], t[~held])
    print("wide_lasso r2", repr(float(r2_score(t[held], fitted.predict(z[held])))))
    print("wide_lasso zeros", (fitted.coef_ == 0).sum())
    x, y = blobs()
    z, held = standardised(x), held_out(np.arange(len(y)) + 2)
    for name, weight in (("blobs", None), ("balanced", "balanced")):
        fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000, class_weight=weight)
        fitted.fit(z[~held], y[~held])
        p = fitted.predict_proba(z[held])
        print(name, "log_loss", repr(float(log_loss(y[held], p))))
        print(name, "macro_f1", repr(float(f1_score(y[held], p.argmax(1), average="macro"))))
        print(name, "first", " ".join(repr(float(v)) for v in p[:5].ravel()))
    x, y = blobs(20000, 67)
    wide, far = standardised(x), held_out(np.arange(len(y)) + 2)
    fitted = LogisticRegression(C=1.0, tol=1e-8, max_iter=10000).fit(wide[~far], y[~far])
    print("wide_blobs log_loss", repr(float(log_loss(y[far], fitted.predict_proba(wide[far])))))
    x, y = blobs()
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000, class_weight="balanced")
    rare = (y == 2).astype(float)
    fitted.fit(z[~held], rare[~held])
    p = fitted.predict_proba(z[held])[:, 1]
    print("balanced_two log_loss", repr(float(log_loss(rare[held], p))))
    print("balanced_two first", " ".join(repr(float(v)) for v in p[:10]))


def judge(name, x, y, two, held=None, flags=None):
    held = held_out(np.arange(len(y)) + 2) if held is None else held
    mean, deviation = np.nanmean(x, axis=0), np.nanstd(x, axis=0, ddof=1)
    deviation[deviation <= np.abs(mean) * 1e-12] = 1.0
    z = np.nan_to_num((x - mean) / deviation)
    if flags is not None:
        z = np.column_stack([z, flags])
    if two:
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000).fit(z[~held], y[~held])
        p = model.predict_proba(z[held])[:, 1]
        figures = {"log_loss": log_loss(y[held], p), "auc": roc_auc_score(y[held], p),
                   "accuracy": np.mean((p >= 0.5) == y[held])}
    else:
        model = Ridge(alpha=1.0, solver="cholesky").fit(z[~held], y[~held])
        p = model.predict(z[held])
        figures = {"rmse": mean_squared_error(y[held], p) ** 0.5, "r2": r2_score(y[held], p)}
        if name.startswith("wide"):
            ols = LinearRegression().fit(z[~held], y[~held])
            figures["ols_r2"] = r2_score(y[held], ols.predict(z[held]))
    for key, value in figures.items():
        print(name, key, repr(float(value)))
    print(name, "first", " ".join(repr(float(v)) for v in p[:10]))


for two in (False, True):
    end = "two" if two else "number"
    for table in (plain, by_target, collinear, constant, extreme):
        x, y = table(two)
        judge(f"{table.__name__}_{end}", x if table is extreme else np.round(x, 6), y, two)
x, y = separable()
judge("separable", np.round(x, 6), y, True)
for columns, two in ((300, False), (600, False), (300, True)):
    judge(f"wide_{columns}_{'two' if two else 'number'}", *wide(columns, two), two)

penalised()

if len(sys.argv) > 1:
    housing = pd.read_csv(os.path.join(sys.argv[1], "california_housing/housing.csv"))
    y = housing.pop("median_house_value").to_numpy()
    x = housing.select_dtypes("number")
    flags = x[["total_bedrooms"]].isna().to_numpy(float)
    judge("housing", x.to_numpy(float), y, False, flags=flags)
    adult = pd.read_csv(os.path.join(sys.argv[1], "adult/adult-train.csv"), header=None, skipinitialspace=True)
    y = (adult.pop(14) == ">50K").to_numpy(float)
    judge("adult", adult.select_dtypes("number").to_numpy(float), y, True, held=held_out(np.arange(len(y)) + 1))
