# cause: success
# needs: numpy
# memory: 300MB
# pattern: not leak
# exit: 0
"""A training in NumPy that makes and frees a large temporary at each step."""
import numpy as np

generator = np.random.default_rng(7)
rows, target = generator.normal(size=(100_000, 30)), generator.normal(size=100_000)
weights = np.zeros(30)
for step in range(150):
    error = rows @ weights - target
    weights -= 0.1 * (rows * error[:, None]).mean(axis=0)
print(weights.round(3))
