# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 14
# exit: 137
"""Objects that register themselves and never go: a registry keeps them alive."""


class Session:
    living = []

    def __init__(self, number):
        self.rows = [pow(number + column, 10**9, 1_000_003) / 7 for column in range(1_000)]
        Session.living.append(self)


for number in range(10**9):
    session = Session(number)
    total = sum(session.rows)
    del session
