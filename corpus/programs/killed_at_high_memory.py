# cause: killed
# grade: proven
# near-miss of: cgroup_oom
# memory: 128MB
# after: kill=KILL 1s
# exit: 137
"""`kill -9` while nearly all memory is taken, and none asked for."""
import time

table = bytearray(b"x") * 110_000_000
print("loaded", len(table), flush=True)
while True:
    time.sleep(0.01)
