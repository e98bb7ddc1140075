# cause: cgroup_oom
# grade: proven
# memory: 200MB
# needs: scipy
# line: 14
# exit: 137
"""A sparse matrix of a few MB, made dense."""
import numpy as np
import scipy.sparse

rows, columns = np.random.default_rng(7).integers(0, 10_000, size=(2, 200_000))
matrix = scipy.sparse.csr_matrix((np.ones(200_000), (rows, columns)), shape=(10_000, 10_000))
print(matrix.shape, flush=True)
dense = matrix.toarray() + 1.0
print(dense.mean())
