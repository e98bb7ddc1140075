# cause: failed
# near-miss of: abort
# exit: 1
"""An assertion in Python is an exception, no abort."""

rows = []
assert rows, "the table is empty"
