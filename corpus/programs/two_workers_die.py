# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 1
"""Two workers, one after the other, are killed for memory."""
import multiprocessing
import sys


def grow():
    kept = []
    while True:
        kept.append([number / 3 for number in range(5_000)])


if __name__ == "__main__":
    for attempt in range(2):
        worker = multiprocessing.Process(target=grow)
        worker.start()
        worker.join()
        print(f"attempt {attempt} ended with {worker.exitcode}", flush=True)
    sys.exit("gave up after two attempts")
