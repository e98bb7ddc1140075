# cause: type_error
# exit: 1
"""A number and a text."""

row = {"price": "12.50"}
print(row["price"] + 1)
