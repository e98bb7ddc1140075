# cause: success
# memory: 300MB
# pattern: not leak
# exit: 0
"""Batches of different lengths: the peak rises once in a while, the bottom stays."""
import random
import time

random.seed(7)
for epoch in range(15):
    size = random.choice([300_000, 600_000, 1_200_000, 2_000_000])
    batch = [number / 7 for number in range(size)]
    time.sleep(0.05)
    del batch
    time.sleep(0.05)
