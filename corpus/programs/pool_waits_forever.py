# cause: child_oom
# grade: proven
# memory: 96MB
# slow
# after: kill=TERM 12s
# exit: 143
"""A worker of a pool is killed for memory: `map` waits for its answer for ever."""
import multiprocessing


def load(part):
    kept = []
    while part == 5:
        kept.append([number / 3 for number in range(5_000)])
    return part


if __name__ == "__main__":
    print("loading", flush=True)
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(load, range(8), chunksize=1)))
