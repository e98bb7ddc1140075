# cause: success
# pattern: not leak
# exit: 0
"""Objects in cycles pile up until the collector comes, again and again."""


class Node:
    def __init__(self):
        self.itself = self
        self.rows = [0.5] * 200


for number in range(400_000):
    Node()
print("done")
