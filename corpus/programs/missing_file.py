# cause: missing_file
# exit: 1
"""A table that is not there."""

with open("data/train.csv") as file:
    print(len(file.read()))
