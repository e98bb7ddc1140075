# cause: shape_error
# exit: 1
"""PyTorch's words."""

raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)")
