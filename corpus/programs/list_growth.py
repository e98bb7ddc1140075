# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 13
# exit: 137
"""A list that every step appends to and nobody empties."""
import math
import random


def predict(step):
    return [round(math.tanh(random.gauss(step, 1)), 6) for _ in range(1_000)]


history = []
for step in range(10**9):
    predictions = predict(step % 7)
    history.append(predictions)
    if step % 500 == 0:
        print(f"step {step} mean {sum(predictions) / len(predictions):.3f}", flush=True)
