# cause: success
# memory: 300MB
# pattern: not leak
# exit: 0
"""Each pass makes a larger sorted copy than the last and lets it go."""
import time

for size in range(200_000, 1_700_000, 150_000):
    copy = sorted(range(size, 0, -1))
    time.sleep(0.1)
    del copy
    time.sleep(0.1)
