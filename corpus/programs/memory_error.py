# cause: memory_error
# exit: 1
"""More than any machine has: MemoryError without any limit."""

rows = 2**40
table = bytearray(rows * 2**20)
print(len(table))
