# cause: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""Two threads that take the same two locks in different order."""
import threading
import time

data, log = threading.Lock(), threading.Lock()


def write():
    with log:
        time.sleep(0.2)
        with data:
            print("written")


print("working", flush=True)
thread = threading.Thread(target=write)
thread.start()
with data:
    time.sleep(0.2)
    with log:
        print("read")
thread.join()
