# cause: shape_error
# needs: scikit-learn
# exit: 1
"""A model asked about a table of other columns."""
import numpy as np
from sklearn.linear_model import LinearRegression

model = LinearRegression().fit(np.zeros((10, 3)), np.zeros(10))
model.predict(np.zeros((10, 4)))
