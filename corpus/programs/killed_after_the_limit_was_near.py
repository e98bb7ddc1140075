# cause: killed
# near-miss of: cgroup_oom
# memory: 128MB
# after: kill=KILL 1s
# exit: 137
"""It came close to the limit and gave all back; then somebody killed it."""
import time

table = bytearray(b"x") * 115_000_000
del table
print("given back", flush=True)
time.sleep(60)
