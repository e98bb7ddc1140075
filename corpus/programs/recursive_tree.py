# cause: cgroup_oom
# grade: proven
# memory: 96MB
# line: 10
# exit: 137
"""A tree whose nodes hold their children, deeper than memory."""


def leaf(number):
    return {"value": [round(number / step, 5) for step in range(1, 200)], "left": None, "right": None}


def grow(depth, number):
    if depth == 0:
        return leaf(number)
    return {"value": None, "left": grow(depth - 1, 2 * number), "right": grow(depth - 1, 2 * number + 1)}


tree = grow(40, 1)
