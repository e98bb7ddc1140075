"""Loads an exported forest into XGBoost and compares its predictions with ours.

    python xgboost_check.py model.json rows.json

`rows.json` holds `rows`, with null for missing values and codes for categories, and our `predicted` probabilities or numbers.
"""
import json
import sys

import numpy as np
import xgboost

model, rows = sys.argv[1:]
booster = xgboost.Booster(model_file=model)
with open(rows) as file:
    data = json.load(file)
x = np.array([[np.nan if v is None else v for v in row] for row in data["rows"]], dtype=np.float32)
ours = np.array(data["predicted"], dtype=np.float64)
matrix = xgboost.DMatrix(x, feature_names=booster.feature_names, feature_types=booster.feature_types, enable_categorical=True)
theirs = booster.predict(matrix).astype(np.float64).reshape(ours.shape)
worst = np.max(np.abs(theirs - ours) / np.maximum(1.0, np.abs(ours)))
print(f"xgboost {xgboost.__version__}: {len(x)} rows, off by {worst:.2e} at the most")
again = model + ".again.json"
booster.save_model(again)
loaded = xgboost.Booster(model_file=again)
if not np.array_equal(loaded.predict(matrix), booster.predict(matrix)):
    sys.exit("saved and loaded again it predicts something else")
if not worst < 1e-5:
    sys.exit("the predictions differ")
