# cause: index_error or failed
# near-miss of: device_memory
# exit: 1
"""An error of CUDA that is none of memory: an index out of range on the device."""
import sys

print(
    "/opt/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [16,0,0], thread: [0,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.",
    file=sys.stderr,
)
raise RuntimeError("CUDA error: device-side assert triggered")
