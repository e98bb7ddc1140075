# cause: failed
# near-miss of: cgroup_oom
# memory: 96MB
# exit: 1
"""It speaks of killing and memory, and ends of something else."""
import sys

print("Killed 3 stale workers")
print("hint: if you run out of memory, use --low-memory")
print("error: the table has no column 'target'", file=sys.stderr)
sys.exit(1)
