# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""A generator that would need no memory, and a `list` around it."""


def rows():
    for number in range(10**9):
        yield {"id": number, "name": f"row {number}", "value": number / 7}


print(sum(row["value"] for row in list(rows())))
