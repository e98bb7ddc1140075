# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""A file that lies in memory: it counts for the cgroup, and for no process's heap."""
import os

file = os.memfd_create("scratch")
block = os.urandom(1 << 20)
while True:
    os.write(file, block)
