# cause: cgroup_oom
# memory: 2GB
# needs: torch
# pattern: leak
# line: 13
# exit: 137
"""Predictions are collected with their graphs: there is no `no_grad`."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
kept = []
while True:
    kept.append(model(torch.randn(512, 256)))
