# cause: failed
# near-miss of: cgroup_oom
# memory: 96MB
# exit: 1
"""A server far away has no memory: that is an error of this program's own, and none of its memory."""


class OperationalError(Exception):
    __module__ = "psycopg2"


raise OperationalError("out of memory\nDETAIL:  Failed on request of size 32800 in memory context \"ExprContext\".\n")
