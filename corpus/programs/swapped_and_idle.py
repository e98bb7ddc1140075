# cause: stopped
# near-miss of: thrashing
# slow
# limit: swapped=100M
# after: kill=TERM 10s
# exit: 143
"""Most of it is swapped out, and stays there: it works on what is in memory."""
size = 200 << 20
table = bytearray(size)
for place in range(0, size, 4096):
    table[place] = 1
print("filled", flush=True)
while True:
    table[-1] ^= 1
