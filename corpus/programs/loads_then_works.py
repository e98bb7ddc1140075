# cause: success
# memory: 300MB
# pattern: not leak
# exit: 0
"""Four seconds of work on a table that is loaded at the beginning; temporaries come and go."""
import time

table = [number / 7 for number in range(1_000_000)]
end = time.monotonic() + 3.5
while time.monotonic() < end:
    part = [value * 2 for value in table[:100_000]]
    time.sleep(0.02)
print(len(part))
