# cause: type_error
# needs: numpy
# exit: 1
"""A result that does not go into the array it is meant for."""
import numpy as np

counts = np.zeros(10, dtype=np.int64)
counts += np.full(10, 0.5)
