# cause: shape_error
# needs: numpy
# exit: 1
"""Matrices that cannot be multiplied."""
import numpy as np

print(np.zeros((32, 512)) @ np.zeros((256, 10)))
