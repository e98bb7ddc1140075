# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""A file of 600 MB read at once, of which one line at a time is needed."""

with open("table.csv", "wb") as file:
    file.truncate(600_000_000)
with open("table.csv", "rb") as file:
    rows = file.read().split(b"\n")
print(len(rows))
