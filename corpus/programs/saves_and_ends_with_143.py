# cause: stopped
# after: kill=TERM 1s to=run
# exit: 143
"""Asked to stop, it saves and ends with the code that says so."""
import signal
import sys
import time


def stop(number, frame):
    print("saved the checkpoint", flush=True)
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, stop)
print("working", flush=True)
while True:
    time.sleep(0.01)
