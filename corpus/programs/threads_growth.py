# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 14
# exit: 137
"""Four threads that each keep what they made."""
import threading

kept = []


def make(worker, step):
    return [pow(worker + step * number, 10**9, 1_000_003) / 7 for number in range(1_000)]


def work(worker):
    for step in range(10**9):
        rows = make(worker, step)
        kept.append(rows)


threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
