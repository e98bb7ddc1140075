# cause: library_version
# near-miss of: missing_file
# exit: 1
"""A package that was built with a newer compiler."""

raise ImportError(
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found "
    "(required by /opt/venv/lib/python3.11/site-packages/matplotlib/_path.cpython-311-x86_64-linux-gnu.so)"
)
