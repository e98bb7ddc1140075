# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""Anonymous maps that are written to, outside of Python's own heap."""
import mmap

maps = []
while True:
    area = mmap.mmap(-1, 4 << 20)
    for page in range(0, len(area), mmap.PAGESIZE):
        area[page] = 1
    maps.append(area)
