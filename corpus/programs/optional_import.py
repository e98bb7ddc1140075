# cause: success
# near-miss of: library_version
# exit: 0
"""A library that is nice to have is missing."""
import sys

try:
    import a_library_that_nobody_has
except ImportError as error:
    print(f"warning: {error}; going on without", file=sys.stderr)
print("done")
