# cause: success
# pattern: not leak
# exit: 0
"""Forked workers read a table, and by counting references copy it page by page."""
import multiprocessing
import time

table = [[number, str(number)] for number in range(200_000)]


def read(worker):
    total = 0
    for start in range(0, len(table), 10_000):
        total += sum(row[0] for row in table[start : start + 10_000])
        time.sleep(0.08)
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(sum(pool.map(read, range(3))))
