# cause: success
# pattern: not leak
# exit: 0
"""A burst of small objects is freed; one in a thousand lives on and holds its arena."""
import time

burst = [[number] for number in range(600_000)]
kept = burst[::1_000]
del burst
print("freed all but", len(kept), flush=True)
for _ in range(50):
    time.sleep(0.05)
