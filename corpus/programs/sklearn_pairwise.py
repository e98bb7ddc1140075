# cause: cgroup_oom
# grade: proven
# memory: 380MB
# needs: scikit-learn
# line: 13
# exit: 137
"""A kernel matrix of all rows with all rows."""
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

rows = np.random.default_rng(7).normal(size=(8_000, 10))
print("rows", rows.shape, flush=True)
kernel = rbf_kernel(rows)
print(kernel.shape)
