# cause: success
# pattern: not leak
# exit: 0
"""A cache with a bound: it grows for a while, then stays."""
import time
from functools import lru_cache


@lru_cache(maxsize=400)
def features(row):
    return [row * step for step in range(5_000)]


for row in range(4_000):
    features(row)
    time.sleep(0.0005)
print(features.cache_info())
