# cause: child_oom
# grade: proven
# memory: 96MB
# line: 13
# exit: 1
"""A worker is killed for memory, and the parent fails of it."""
import multiprocessing


def grow():
    kept = []
    while True:
        kept.append([round(number / 3, 5) for number in range(5_000)])


if __name__ == "__main__":
    worker = multiprocessing.Process(target=grow)
    worker.start()
    worker.join()
    if worker.exitcode != 0:
        raise RuntimeError(f"the worker ended with {worker.exitcode}")
