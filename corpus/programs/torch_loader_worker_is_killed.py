# cause: child_oom
# memory: 900MB
# needs: torch
# exit: 1
"""A worker of the loader keeps what it reads, and the kernel kills it."""
import torch


class Pictures(torch.utils.data.Dataset):
    kept = []

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        self.kept.append(torch.ones(2_000_000))
        return torch.ones(16)


for batch in torch.utils.data.DataLoader(Pictures(), batch_size=4, num_workers=1):
    pass
