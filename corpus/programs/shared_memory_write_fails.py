# cause: shared_memory
# limit: shm=8M
# exit: 1
"""A file in /dev/shm that does not fit there."""
import os

path = "/dev/shm/batch"
handle = os.open(path, os.O_CREAT | os.O_RDWR)
try:
    for _ in range(64):
        os.write(handle, bytes(1 << 20))
except OSError as error:
    raise OSError(error.errno, os.strerror(error.errno), path) from None
