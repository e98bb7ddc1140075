# cause: index_error
# exit: 1
"""PyTorch's words for a class that the model does not have."""

raise IndexError("Target 10 is out of bounds.")
