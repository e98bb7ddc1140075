# cause: cgroup_oom
# grade: proven
# memory: 200MB
# needs: numpy
# line: 12
# exit: 137
"""Distances of all to all: one line makes a cube of numbers."""
import numpy as np

points = np.random.default_rng(7).normal(size=(2_000, 50))
print("points", points.shape, flush=True)
distances = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
print(distances.shape)
