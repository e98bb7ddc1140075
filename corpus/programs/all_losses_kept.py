# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 13
# exit: 137
"""A training loop that keeps the whole graph of every loss, where the number would do."""
import random


class Loss:
    def __init__(self, batch):
        self.graph = [pow(value, 10**9, 1_000_003) / 1_000_003 for value in batch]
        self.value = sum(self.graph) / len(batch)


batch = [random.randrange(10**6) for _ in range(500)]
losses = []
for step in range(10**9):
    losses.append(Loss(batch))
    if step % 200 == 0:
        print(f"step {step} loss: {losses[-1].value:.4f}", flush=True)
