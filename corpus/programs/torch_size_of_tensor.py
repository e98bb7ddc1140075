# cause: shape_error
# exit: 1
"""PyTorch's words."""

raise RuntimeError("The size of tensor a (10) must match the size of tensor b (12) at non-singleton dimension 1")
