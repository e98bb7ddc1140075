# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It waits for a time of day, as it should; somebody stops it."""
import time

print("waiting for the night", flush=True)
time.sleep(3600)
