# cause: cgroup_oom
# grade: proven
# memory: 160MB
# pattern: leak
# needs: numpy
# line: 15
# exit: 137
"""A result of every step, kept to look at later."""
import numpy as np

generator = np.random.default_rng(7)
window = np.ones(501) / 501
history = []
for step in range(10**9):
    history.append(np.convolve(generator.normal(size=10_000), window))
    if step % 100 == 0:
        print(f"step {step} mean {history[-1].mean():.4f}", flush=True)
