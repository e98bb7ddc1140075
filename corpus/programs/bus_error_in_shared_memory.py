# cause: shared_memory
# limit: shm=8M
# exit: 135
"""/dev/shm is as small as in a container: writing to what was promised there is a bus error."""
from multiprocessing import shared_memory

block = shared_memory.SharedMemory(create=True, size=64 << 20)
block.unlink()
print("made", block.size, flush=True)
for at in range(0, block.size, 4096):
    block.buf[at] = 1
print("filled")
