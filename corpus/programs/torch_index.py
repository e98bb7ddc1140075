# cause: index_error
# needs: torch
# exit: 1
"""A word that the embedding has no row for."""
import torch

table = torch.nn.Embedding(100, 8)
print(table(torch.tensor([3, 100])))
