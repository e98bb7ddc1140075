# cause: segmentation_fault
# near-miss of: shared_memory
# exit: 135
"""A mapped file is cut by somebody else: a bus error that has nothing to do with memory."""
import mmap
import os

handle = os.open("table.bin", os.O_CREAT | os.O_RDWR)
os.ftruncate(handle, 1 << 20)
table = mmap.mmap(handle, 1 << 20)
os.truncate("table.bin", 0)
print(table[500_000])
