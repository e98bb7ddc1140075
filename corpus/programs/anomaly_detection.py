# cause: not_a_number
# exit: 1
"""PyTorch's anomaly detection."""

raise RuntimeError("Function 'MulBackward0' returned nan values in its 0th output.")
