# cause: success
# memory: 300MB
# exit: 0
"""Builds what it is there to build, once, and uses it: whether that is a leak only its author knows."""

squares = [number * number for number in range(2_000_000)]
print(sum(squares))
