# cause: success
# near-miss of: memory_error
# exit: 0
"""A MemoryError that it copes with."""
import sys

size = 2**60
while True:
    try:
        table = bytearray(size)
        break
    except MemoryError:
        size //= 2**20
        print("MemoryError, trying again with less", file=sys.stderr)
print("done with", len(table))
