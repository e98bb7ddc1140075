# cause: shared_memory
# near-miss of: disk_full
# exit: 1
"""PyTorch could not write a tensor to /dev/shm."""

raise RuntimeError("unable to write to file </torch_4521_3718284_0>: No space left on device (28)")
