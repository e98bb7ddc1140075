# cause: cgroup_oom
# grade: proven
# memory: 200MB
# needs: pandas
# line: 14
# exit: 137
"""A column of many categories becomes as many columns."""
import numpy as np
import pandas as pd

codes = np.random.default_rng(7).integers(0, 5_000, size=100_000)
table = pd.DataFrame({"city": codes.astype(str)})
print(table.shape, flush=True)
wide = pd.get_dummies(table, columns=["city"])
print(wide.shape)
