# cause: killed
# grade: proven
# near-miss of: cgroup_oom
# after: kill=KILL 1s
# exit: 137
"""`kill -9`, while it computes and has little memory."""

print("computing", flush=True)
total = 0
while True:
    total += sum(range(1_000))
