# cause: missing_file
# needs: pandas
# exit: 1
"""A table that is not there, deep within a library."""
import pandas as pd

pd.read_csv("data/train.csv")
