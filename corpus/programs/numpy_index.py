# cause: index_error
# needs: numpy
# exit: 1
"""An index beyond the end of an axis."""
import numpy as np

table = np.zeros((5, 3))
print(table[5, 0])
