# cause: segmentation_fault
# exit: 139
"""The same with a Python traceback from faulthandler."""
import ctypes
import faulthandler

faulthandler.enable()


def read(address):
    return ctypes.string_at(address)


print(read(0))
