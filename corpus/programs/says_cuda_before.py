# cause: cgroup_oom
# grade: proven
# memory: 96MB
# near-miss of: device_memory
# exit: 137
"""The accelerator ran out first, which was coped with; then the kernel killed it for its own memory."""


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


try:
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB")
except OutOfMemoryError as error:
    print(f"{error}; going on with half the batch", flush=True)
kept = []
while True:
    kept.append([number / 3 for number in range(5_000)])
