# cause: success
# grade: proven
# exit: 0
"""It says nothing and is done."""

total = sum(range(100_000))
