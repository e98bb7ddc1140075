# cause: stopped
# grade: proven
# after: kill=TERM 1s
# exit: 143
"""`kill`, while it computes."""

print("computing", flush=True)
total = 0
while True:
    total += sum(range(1_000))
