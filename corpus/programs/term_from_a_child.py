# cause: stopped
# near-miss of: oom_daemon
# exit: 143
"""Its own child ends it, and says nothing about memory."""
import os
import signal
import time

if os.fork() == 0:
    time.sleep(0.5)
    os.kill(os.getppid(), signal.SIGTERM)
    os._exit(0)
print("working", flush=True)
while True:
    time.sleep(0.01)
