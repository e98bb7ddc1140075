# cause: killed
# near-miss of: cgroup_oom
# memory: 200MB
# after: kill=KILL 0.5s
# exit: 137
"""It speaks of memory in passing; somebody kills it for another reason."""
import time

print("warning: the last run died: Out of memory: Killed process 4711 (python3)", flush=True)
print("starting again with a smaller batch", flush=True)
time.sleep(60)
