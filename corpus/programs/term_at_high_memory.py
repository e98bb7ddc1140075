# cause: stopped
# near-miss of: cgroup_oom
# memory: 128MB
# after: kill=TERM 1s
# exit: 143
"""`kill` while nearly all memory is taken."""
import time

table = bytearray(b"x") * 112_000_000
print("loaded", flush=True)
while True:
    time.sleep(0.01)
