"""Prints the expected values of by_category.rs: scikit-learn and category_encoders (pip install category_encoders)."""
import warnings

import category_encoders as ce
import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

warnings.simplefilter("ignore")
cities = list("abacabadcabaceabfa")
x = np.array(cities, dtype=object).reshape(-1, 1)
frame = pd.DataFrame({"city": cities})
numbers = np.array([(7 * i % 11) / 2 for i in range(len(cities))])
binary = np.array([i % 3 == 0 for i in range(len(cities))], dtype=float)
classes = np.array([(3 * i + i // 4) % 4 for i in range(len(cities))])
folds = np.arange(len(cities)) % 3


def show(name, values):
    print(name, [round(float(v), 6) for v in np.ravel(values)])


def names(name, encoder):
    print(name, list(encoder.get_feature_names_out(["city"])))


# The columns of scikit-learn come in the order of the names; max_categories counts the infrequent column.
names("all", OneHotEncoder().fit(x))
names("max 2", OneHotEncoder(max_categories=3).fit(x))
names("least 2", OneHotEncoder(min_frequency=2).fit(x))
names("least 4", OneHotEncoder(min_frequency=4).fit(x))
encoder = OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist", sparse_output=False).fit(x)
show("max 2, a d z", encoder.transform([["a"], ["d"], ["z"]]))
names("drop a", OneHotEncoder(drop=["a"]).fit(x))

show("ordinal by name", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(x).transform([[c] for c in "abcdefz"]))
show("count", ce.CountEncoder(cols=["city"]).fit(frame).transform(pd.DataFrame({"city": list("abcdef")})))
show("share", ce.CountEncoder(cols=["city"], normalize=True).fit(frame).transform(pd.DataFrame({"city": list("abcdef")})))

for smooth in [1.0, 5.0]:
    encoder = TargetEncoder(smooth=smooth, target_type="continuous").fit(x, numbers)
    show(f"target, smooth {smooth}", encoder.transform([[c] for c in "abcdefz"]))
encoder = ce.MEstimateEncoder(cols=["city"], m=2.0).fit(frame, binary)
show("m-estimate 2", encoder.transform(pd.DataFrame({"city": list("abcdefz")})))
encoder = TargetEncoder(smooth=3.0, target_type="multiclass").fit(x, classes)
show("classes 1 to 3, smooth 3", encoder.transform([[c] for c in "abz"])[:, [1, 2, 3]])


def out_of_fold(target, smooth):
    encoded = np.zeros(len(cities))
    for fold in range(3):
        own = folds == fold
        encoder = TargetEncoder(smooth=smooth, target_type="continuous").fit(x[~own], target[~own])
        encoded[own] = encoder.transform(x[own])[:, 0]
    return encoded


show("out of fold, numbers", out_of_fold(numbers, 5.0))
show("out of fold, binary", out_of_fold(binary, 2.0))
# Every row its own fold and no smoothing is leave-one-out.
twice = pd.DataFrame({"city": list("aabbabab")})
target = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0])
show("leave one out", ce.LeaveOneOutEncoder(cols=["city"]).fit_transform(twice, target))
