# cause: address_space
# limit: as=200M
# exit: 1
"""`ulimit -v`: MemoryError, though the machine has plenty."""

kept = []
while True:
    kept.append(bytearray(1 << 20))
