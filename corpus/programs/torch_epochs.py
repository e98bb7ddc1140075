# cause: success
# memory: 1GB
# needs: torch
# pattern: not leak
# near-miss of: cgroup_oom
# exit: 0
"""Epochs as they should be: memory goes up and down, and nothing stays."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(6):
    table = torch.randn(40_000, 256)
    total = 0.0
    for batch in table.split(1_000):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total, flush=True)
    del table, batch
