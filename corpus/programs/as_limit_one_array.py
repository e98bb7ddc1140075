# cause: address_space
# limit: as=400M
# exit: 1
"""One array that the machine has room for, and the limit of its address space has not."""

columns = 50
table = bytearray(10_000_000 * columns)
print(len(table))
