# cause: shared_memory
# exit: 1
"""PyTorch's data loader in a container with a small /dev/shm."""
import sys

print("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
      file=sys.stderr)
raise RuntimeError(
    "DataLoader worker (pid 4521) is killed by signal: Bus error. It is possible that dataloader's workers are out of "
    "shared memory. Please try to raise your shared memory limit."
)
