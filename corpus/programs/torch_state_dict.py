# cause: shape_error
# exit: 1
"""PyTorch's words for a checkpoint of another model."""

raise RuntimeError(
    "Error(s) in loading state_dict for Net:\n"
    "\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 512]) from checkpoint, "
    "the shape in current model is torch.Size([12, 512])."
)
