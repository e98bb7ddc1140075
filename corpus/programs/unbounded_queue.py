# cause: cgroup_oom
# grade: proven
# memory: 96MB
# line: 21
# exit: 137
"""A producer that is faster than its consumer, and a queue without a bound."""
import queue
import threading
import time

waiting = queue.Queue()


def consume():
    while True:
        waiting.get()
        time.sleep(0.5)


def read(batch):
    return [round(batch * number / 7, 5) for number in range(2_000)]


threading.Thread(target=consume, daemon=True).start()
for batch in range(10**9):
    waiting.put(read(batch))
