# cause: segmentation_fault
# exit: 139
"""A foreign function reads what is not there."""
import ctypes

print("calling", flush=True)
print(ctypes.string_at(0))
