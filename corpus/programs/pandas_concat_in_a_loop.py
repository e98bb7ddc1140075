# cause: cgroup_oom
# grade: proven
# memory: 200MB
# needs: pandas
# line: 14
# exit: 137
"""A table that is copied whole for every piece that is added."""
import numpy as np
import pandas as pd

piece = pd.DataFrame(np.random.default_rng(7).normal(size=(20_000, 10)))
table = piece.copy()
while True:
    table = pd.concat([table, piece])
