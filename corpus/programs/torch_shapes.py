# cause: shape_error
# needs: torch
# exit: 1
"""The data has another width than the first layer."""
import torch

model = torch.nn.Linear(32, 10)
print(model(torch.randn(8, 31)))
