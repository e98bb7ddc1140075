# cause: success
# near-miss of: stack_overflow
# exit: 0
"""RecursionError that it copes with, on a second way without recursion."""


def depth(tree):
    return 1 + depth(tree[0]) if tree else 0


tree = []
for _ in range(100_000):
    tree = [tree]
try:
    print(depth(tree))
except RecursionError as error:
    print("RecursionError:", error)
    levels = 0
    while tree:
        tree, levels = tree[0], levels + 1
    print(levels)
