# cause: cgroup_oom
# memory: 2GB
# needs: torch
# pattern: leak
# exit: 137
"""The sum of all losses keeps the graph of every step."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
print("training", flush=True)
total = 0
while True:
    batch = torch.randn(512, 256)
    loss = model(batch).square().mean()
    total = total + loss
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
