"""Prints the expected values of numbers.rs: scikit-learn's scalers, imputers and bins."""
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, QuantileTransformer, StandardScaler

nan = np.nan
x = np.array([3.5, nan, -2.0, 8.25, 3.5, 0.0, 100.0, nan, 4.75, 3.5, -7.5, 12.0]).reshape(-1, 1)
known = x[~np.isnan(x)].reshape(-1, 1)


def show(name, values):
    print(name, [round(float(v), 7) for v in np.ravel(values)])


for strategy in ["mean", "median"]:
    show(f"impute {strategy}", SimpleImputer(strategy=strategy).fit(x).statistics_)
filled = SimpleImputer(strategy="mean").fit_transform(x)
show("standard", StandardScaler().fit(known).transform(filled))
filled = SimpleImputer(strategy="median").fit_transform(x)
show("min_max", MinMaxScaler().fit(known).transform(filled))
low, high = np.quantile(known, [0.1, 0.9])
show("clip at", [low, high])
show("clipped", MinMaxScaler().fit(np.clip(known, low, high)).transform(np.clip(filled, low, high)))
# 201 landmarks, as our ranks have.
y = (np.arange(1000) * 7919 % 1000 / 10.0) ** 2
ranks = QuantileTransformer(n_quantiles=201, subsample=None).fit(y.reshape(-1, 1))
at = [-5.0, 0.0, 0.01, 3.7, 50.0, 1234.5, 4900.0, 9980.01, 1e6]
show("rank", ranks.transform(np.array(at).reshape(-1, 1)))
duplicated = np.repeat([1.0, 2.0, 3.0, 4.0], [10, 60, 20, 110])
ranks = QuantileTransformer(n_quantiles=201, subsample=None).fit(np.append(duplicated, 5.0).reshape(-1, 1))
show("rank of duplicates", ranks.transform(np.array([0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0]).reshape(-1, 1)))
bins = KBinsDiscretizer(n_bins=4, encode="ordinal", strategy="quantile", quantile_method="linear", subsample=None)
z = np.arange(20.0).reshape(-1, 1)
show("bins", bins.fit_transform(z))
