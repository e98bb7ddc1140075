# cause: cgroup_oom
# grade: proven
# memory: 96MB
# exit: 137
"""It has a child that does little; the one that grows is the first process."""
import subprocess

child = subprocess.Popen(["sleep", "60"])
kept = []
while True:
    kept.append([number / 3 for number in range(5_000)])
