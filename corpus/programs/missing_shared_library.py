# cause: library_version
# near-miss of: missing_file
# exit: 1
"""A shared library that is not there."""
import ctypes

ctypes.CDLL("libcudnn_ops_that_nobody_has.so.9")
