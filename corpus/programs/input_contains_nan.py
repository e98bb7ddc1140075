# cause: failed
# near-miss of: not_a_number
# needs: scikit-learn
# exit: 1
"""The data have holes, which a model refuses: nothing became lost in training."""
import numpy as np
from sklearn.linear_model import LinearRegression

rows = np.array([[1.0, 2.0], [np.nan, 3.0]])
LinearRegression().fit(rows, [1.0, 2.0])
