# cause: memory_error
# exit: 1
"""A worker's MemoryError, raised again in the parent."""
from concurrent.futures import ProcessPoolExecutor


def load(part):
    return len(bytearray(2**60)) + part


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=1) as pool:
        print(sum(pool.map(load, range(2))))
