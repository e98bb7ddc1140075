# cause: failed
# near-miss of: cgroup_oom
# exit: 137
"""The same from Python, without a limit."""
import sys

sys.exit(137)
