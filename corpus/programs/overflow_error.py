# cause: failed
# near-miss of: memory_error
# exit: 1
"""A number too large to be a size is an error of its own, and says nothing about memory."""

print(len("x" * 10**30))
