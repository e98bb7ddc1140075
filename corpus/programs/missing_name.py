# cause: library_version
# exit: 1
"""A name that another version has."""
from collections import Mapping

print(Mapping)
