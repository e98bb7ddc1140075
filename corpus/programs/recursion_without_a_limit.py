# cause: stack_overflow
# near-miss of: segmentation_fault
# exit: 139
"""The limit of recursion was raised: then the stack of the process is what ends."""
import sys

sys.setrecursionlimit(10**7)


class Node:
    def __repr__(self):
        return repr(self)


print(repr(Node()))
