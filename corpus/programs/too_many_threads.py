# cause: processes
# limit: pids=60
# exit: 1
"""A thread for every request."""
import threading
import time

for number in range(500):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
