# cause: success
# memory: 300MB
# pattern: leak
# exit: 0
"""A worker leaks for as long as it lives, and ends in good order."""
import multiprocessing
import time


def work():
    kept = []
    for step in range(60):
        kept.append([step * number for number in range(20_000)])
        time.sleep(0.05)


if __name__ == "__main__":
    worker = multiprocessing.Process(target=work)
    worker.start()
    worker.join()
    print("the worker ended with", worker.exitcode)
