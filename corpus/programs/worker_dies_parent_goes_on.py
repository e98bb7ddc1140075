# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 0
"""A worker is killed for memory; the parent notices, and is content without it."""
import multiprocessing


def grow():
    kept = []
    while True:
        kept.append([number / 3 for number in range(5_000)])


if __name__ == "__main__":
    worker = multiprocessing.Process(target=grow)
    worker.start()
    worker.join()
    print("the worker ended with", worker.exitcode)
