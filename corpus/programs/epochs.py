# cause: success
# memory: 200MB
# pattern: not leak
# exit: 0
"""Every epoch loads its table and lets it go."""
import time

for epoch in range(10):
    table = [number / 7 for number in range(1_500_000)]
    print(f"epoch {epoch} mean {sum(table) / len(table):.3f}", flush=True)
    del table
    time.sleep(0.1)
