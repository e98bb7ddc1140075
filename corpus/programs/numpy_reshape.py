# cause: shape_error
# needs: numpy
# exit: 1
"""A shape that has room for less."""
import numpy as np

print(np.zeros(1_000).reshape(32, 32))
