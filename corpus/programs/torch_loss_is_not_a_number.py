# cause: not_a_number
# needs: torch
# exit: 1
"""A learning rate that is far too high, and a check that stops."""
import torch

model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e4)
data = torch.randn(64, 16)
for step in range(1_000):
    loss = (model(data) - data.sum(1, keepdim=True)).square().mean()
    print(f"step {step} loss {loss.item()}", flush=True)
    if not torch.isfinite(loss):
        raise ValueError(f"loss is {loss.item()} at step {step}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
