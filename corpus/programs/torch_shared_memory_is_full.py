# cause: shared_memory
# needs: torch
# limit: shm=16M
# exit: 1
"""Batches of the loader's workers do not fit into /dev/shm, as in a container."""
import torch


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.ones(1_000_000)


for batch in torch.utils.data.DataLoader(Pictures(), batch_size=16, num_workers=2):
    print(batch.shape, flush=True)
