# cause: success
# near-miss of: memory_error
# exit: 0
"""A MemoryError whose whole traceback goes to the log; then it goes on to the end."""
import logging

try:
    table = bytearray(2**60)
except MemoryError:
    logging.exception("no room for the whole table, going on in parts")
print("done in parts")
