# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""One request for far more than there is."""

print("preparing", flush=True)
table = bytearray(2_000_000_000)
print(len(table))
