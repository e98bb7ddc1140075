# cause: type_error
# exit: 1
"""PyTorch's words."""

raise RuntimeError("expected scalar type Float but found Double")
