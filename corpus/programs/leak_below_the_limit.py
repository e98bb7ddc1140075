# cause: success
# near-miss of: cgroup_oom
# memory: 300MB
# pattern: leak
# exit: 0
"""A slow leak that would have come to the limit, an hour later."""
import time

kept = []
for step in range(80):
    kept.append([step * number for number in range(20_000)])
    time.sleep(0.04)
print("kept", len(kept))
