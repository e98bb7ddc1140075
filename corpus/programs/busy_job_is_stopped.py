# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It says nothing for long, but it computes."""

print("computing", flush=True)
total = 0
while True:
    total += sum(range(1_000))
