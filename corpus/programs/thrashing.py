# cause: thrashing
# grade: likely
# slow
# limit: swapped=100M
# after: kill=TERM 14s
# exit: 143
"""Three times as much as it may keep in memory, in no order; somebody ends it when it does not get on."""
import random

size = 300 << 20
table = bytearray(size)
for place in range(0, size, 4096):
    table[place] = 1
print("filled", flush=True)
while True:
    table[random.randrange(size)] = 2
