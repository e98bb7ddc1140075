# cause: stopped
# grade: proven
# after: kill=INT 1s to=run
# exit: 130
"""Ctrl-C: KeyboardInterrupt, and a traceback that is no error."""

print("computing", flush=True)
total = 0
while True:
    total += sum(range(1_000))
