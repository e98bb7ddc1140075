# cause: abort
# exit: 134
"""A native library that gives up below Python."""
import ctypes

print("calling", flush=True)
ctypes.CDLL(None).abort()
