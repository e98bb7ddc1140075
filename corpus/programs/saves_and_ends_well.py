# cause: success or stopped
# after: kill=TERM 1s to=run
# exit: 0
"""Asked to stop, it saves and ends in good order."""
import signal
import sys
import time


def stop(number, frame):
    print("saved the checkpoint", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
print("working", flush=True)
while True:
    time.sleep(0.01)
