# cause: index_error
# near-miss of: device_memory
# exit: 1
"""The accelerator ran out, which was coped with; it ends of something else."""
import traceback


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


try:
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB")
except OutOfMemoryError:
    traceback.print_exc()
    print("going on with half the batch", flush=True)
labels = ["cat", "dog"]
print(labels[7])
