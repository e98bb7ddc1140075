# cause: index_error
# exit: 1
"""PyTorch's words for a word that the vocabulary does not have."""

raise IndexError("index out of range in self")
