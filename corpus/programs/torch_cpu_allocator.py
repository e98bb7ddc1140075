# cause: memory_error or bad_alloc
# near-miss of: device_memory
# exit: 1
"""PyTorch's own words for memory of the machine, not of an accelerator."""

raise RuntimeError(
    '[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can\'t allocate memory: '
    "you tried to allocate 400000000000000 bytes. Error code 12 (Cannot allocate memory)"
)
