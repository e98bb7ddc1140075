# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 1
"""A worker of a pool is killed for memory: BrokenProcessPool."""
from concurrent.futures import ProcessPoolExecutor


def load(part):
    if part < 3:
        return part
    kept = []
    while True:
        kept.append([number / 3 for number in range(5_000)])


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=2) as pool:
        print(sum(pool.map(load, range(8))))
