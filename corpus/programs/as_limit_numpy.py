# cause: address_space
# needs: numpy
# limit: as=1G
# exit: 1
"""NumPy under `ulimit -v`."""
import numpy as np

print(np.ones((50_000, 3_000)).nbytes + np.ones((50_000, 3_000)).nbytes)
