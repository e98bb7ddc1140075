# cause: success
# pattern: not leak
# exit: 0
"""Modules, buffers and a model are loaded in steps; then it works with what it has."""
import time

parts = []
for part in range(6):
    parts.append([number * part for number in range(300_000)])
    time.sleep(0.1)
for _ in range(50):
    sum(parts[0])
    time.sleep(0.04)
print(len(parts))
