# cause: failed or index_error
# exit: 1
"""A column that is not there."""

row = {"id": 1, "name": "a"}
print(row["target"])
