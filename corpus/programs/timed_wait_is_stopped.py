# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It waits for an event, but not for ever: it would go on by itself."""
import threading

print("waiting", flush=True)
if not threading.Event().wait(3600):
    print("going on without it")
