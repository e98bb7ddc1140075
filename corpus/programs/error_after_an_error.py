# cause: missing_file
# near-miss of: memory_error
# exit: 1
"""While it copes with one error another one ends it: the last one is why."""

try:
    table = bytearray(2**60)
except MemoryError:
    with open("parts/table-0.csv") as file:
        print(file.read())
