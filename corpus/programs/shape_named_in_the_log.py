# cause: failed
# near-miss of: shape_error
# exit: 1
"""Shapes in the log, and an error that is none of shape."""

print("input shape (32, 512), output shape (32, 10)")
print("operands could be broadcast together with shapes (32,10) (1,10)")
raise TimeoutError("no answer from the server within 30 s")
