# cause: stack_overflow
# exit: 1
"""Python's own limit of recursion."""


def depth(tree):
    return 1 + depth(tree)


print(depth({}))
