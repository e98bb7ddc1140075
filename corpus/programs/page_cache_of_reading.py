# cause: success
# near-miss of: cgroup_oom
# memory: 96MB
# pattern: not leak
# exit: 0
"""A file of 200 MB read in pieces: what grows is the page cache, which the kernel takes back."""
import time

piece = bytes(range(256)) * 4_096
with open("table.bin", "wb") as file:
    for _ in range(200):
        file.write(piece)
total = 0
with open("table.bin", "rb") as file:
    while piece := file.read(1 << 20):
        total += len(piece)
        time.sleep(0.01)
print(total)
