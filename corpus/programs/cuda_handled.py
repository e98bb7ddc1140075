# cause: success
# near-miss of: device_memory
# exit: 0
"""The accelerator ran out, half the batch fitted."""


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


def step(batch):
    if batch > 64:
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB")
    return 0.5


batch = 256
while True:
    try:
        print("loss", step(batch))
        break
    except OutOfMemoryError as error:
        print(f"batch {batch}: {error}", flush=True)
        batch //= 2
