# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""A file in /dev/shm, which is large enough; the cgroup is not."""
import os
import tempfile

handle, path = tempfile.mkstemp(dir="/dev/shm")
os.unlink(path)
block = os.urandom(1 << 20)
while True:
    os.write(handle, block)
