# cause: shape_error
# needs: pandas
# exit: 1
"""A column that is too short."""
import pandas as pd

table = pd.DataFrame({"id": [1, 2, 3, 4]})
table["value"] = [0.1, 0.2, 0.3]
