# cause: memory_error
# needs: numpy
# exit: 1
"""NumPy says how much it could not have."""
import numpy as np

print(np.ones((3_000_000, 30_000_000)).mean())
