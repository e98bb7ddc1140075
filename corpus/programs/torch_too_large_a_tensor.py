# cause: memory_error or bad_alloc
# needs: torch
# exit: 1
"""A tensor of four terabytes."""
import torch

print(torch.empty(10**12).shape)
