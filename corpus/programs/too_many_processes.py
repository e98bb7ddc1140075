# cause: processes
# limit: pids=60
# exit: 1
"""A process for every request."""
import os
import time

for number in range(500):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
