# cause: success
# pattern: not leak
# exit: 0
"""All that it needs is there from the beginning."""

table = bytearray(60_000_000)
total = 0
for turn in range(1_500):
    for at in range(0, len(table), 4_096):
        table[at] = turn % 256
    total += table[0]
print(total)
