# cause: cgroup_oom
# grade: proven
# memory: 340MB
# needs: scikit-learn
# line: 15
# exit: 137
"""A forest of full-grown trees."""
import numpy as np
from sklearn.ensemble import RandomForestRegressor

generator = np.random.default_rng(7)
rows, target = generator.normal(size=(30_000, 3)), generator.normal(size=30_000)
print("rows", rows.shape, flush=True)
forest = RandomForestRegressor(n_estimators=500, max_features=1)
forest.fit(rows, target)
print(forest.score(rows, target))
