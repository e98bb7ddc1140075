# cause: failed or killed
# near-miss of: child_oom
# memory: 200MB
# after: kill=KILL 0.5s to=child
# exit: 1
"""A worker is killed by somebody, and not for memory; the pool breaks in the same words."""
import time
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=1) as pool:
        future = pool.submit(time.sleep, 60)
        print("waiting", flush=True)
        future.result()
