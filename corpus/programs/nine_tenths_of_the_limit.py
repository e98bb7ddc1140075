# cause: success
# near-miss of: cgroup_oom
# memory: 128MB
# pattern: not leak
# exit: 0
"""Nearly all that it may have, and no more."""
import time

table = bytearray(b"x") * 105_000_000
for _ in range(20):
    time.sleep(0.05)
    total = sum(table[:1_000])
print(total)
