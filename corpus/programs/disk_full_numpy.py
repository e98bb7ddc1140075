# cause: disk_full
# needs: numpy
# limit: disk=2M
# exit: 1
"""NumPy says how much it wanted to write, and how much it could."""
import numpy as np

np.ones(1_000_000).tofile("disk/table.bin")
