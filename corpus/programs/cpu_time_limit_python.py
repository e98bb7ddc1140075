# cause: time_limit
# limit: cpu=1
# exit: 152
"""The same for Python."""

total = 0
while True:
    total += sum(range(1_000))
