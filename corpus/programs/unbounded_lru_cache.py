# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 13
# exit: 137
"""`lru_cache(maxsize=None)` keeps every answer."""
from functools import lru_cache


@lru_cache(maxsize=None)
def features(row):
    return [pow(row + step, 10**9, 1_000_003) / 1_000_003 for step in range(1_000)]


best = 0.0
for row in range(10**9):
    values = features(row)
    best = max(best, values[-1], values[row % 1_000])
