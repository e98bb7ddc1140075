# cause: segmentation_fault or failed
# near-miss of: child_oom
# memory: 200MB
# exit: 1
"""A worker of a pool crashes by itself; the pool breaks in the same words."""
import ctypes
from concurrent.futures import ProcessPoolExecutor


def crash(address):
    return ctypes.string_at(address)


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=1) as pool:
        print(pool.submit(crash, 0).result())
