# cause: library_version
# needs: numpy
# exit: 1
"""A name that NumPy 2 no longer has."""
import numpy as np

print(np.float_(1.5))
