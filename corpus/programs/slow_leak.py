# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# exit: 137
"""A service that keeps a little of every request."""
import random
import time

kept = []
while True:
    time.sleep(0.02)
    request = bytearray(random.randbytes(300_000))
    kept.append(request)
