# cause: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It reads from a pipe whose other end it holds itself and has forgotten."""
import os

reader, writer = os.pipe()
print("reading", flush=True)
os.read(reader, 1)
