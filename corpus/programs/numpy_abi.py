# cause: library_version
# near-miss of: shape_error
# exit: 1
"""A package that was built with another NumPy."""

raise ValueError(
    "numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject"
)
