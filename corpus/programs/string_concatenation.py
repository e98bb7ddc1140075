# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""One text that grows by a piece at a time."""


def report():
    text = ""
    for number in range(10**9):
        text += f"row {number}: " + "x" * 200 + "\n"
    return text


print(len(report()))
