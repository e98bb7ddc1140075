# cause: cgroup_oom
# grade: proven
# memory: 96MB
# near-miss of: stopped
# after: kill=TERM 0.2s
# exit: 137
"""Asked to stop, it goes on to save, and the saving takes too much memory."""
import signal
import time

asked = []
signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
print("working", flush=True)
while not asked:
    time.sleep(0.01)
print("saving", flush=True)
saved = []
while True:
    saved.append(repr([number / 3 for number in range(5_000)]))
