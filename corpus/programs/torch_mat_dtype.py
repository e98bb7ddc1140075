# cause: type_error
# exit: 1
"""PyTorch's words."""

raise RuntimeError("mat1 and mat2 must have the same dtype, but got Double and Float")
