# cause: killed
# grade: proven
# near-miss of: cgroup_oom
# memory: 400MB
# after: kill=KILL 0.5s
# exit: 137
"""`kill -9` in the middle of growing, far from the limit."""

print("growing", flush=True)
kept = []
while True:
    kept.append([number / 3 for number in range(1_000)])
    sum(range(20_000))
