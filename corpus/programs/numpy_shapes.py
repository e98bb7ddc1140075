# cause: shape_error
# needs: numpy
# exit: 1
"""Arrays that do not fit."""
import numpy as np

print(np.zeros((32, 10)) + np.zeros((32, 12)))
