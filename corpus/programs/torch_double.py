# cause: type_error
# needs: torch
# exit: 1
"""Numbers of NumPy are doubles, weights are not."""
import numpy as np
import torch

model = torch.nn.Linear(4, 1)
print(model(torch.from_numpy(np.ones((2, 4)))))
