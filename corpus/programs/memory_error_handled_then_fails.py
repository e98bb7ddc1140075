# cause: failed
# near-miss of: memory_error
# exit: 1
"""A MemoryError that it copes with, and later an error that has nothing to do with it."""
import traceback

try:
    table = bytearray(2**60)
except MemoryError:
    traceback.print_exc()
    print("going on in parts", flush=True)
settings = {"rate": "fast"}
if settings["rate"] not in ("0.1", "0.01"):
    raise ValueError(f"rate is {settings['rate']!r}, not a number")
