# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""The main thread waits for others that wait for a time, between two requests that are rationed."""
import time
from concurrent.futures import ThreadPoolExecutor


def fetch(page):
    time.sleep(3600)
    return page


print("fetching", flush=True)
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(fetch, range(4))))
