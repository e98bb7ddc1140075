# cause: cgroup_oom
# grade: proven
# memory: 64MB
# exit: 137
# A pipeline of which one part holds all that passes through it; the shell ends as that part did.
set -o pipefail
head -c 300000000 /dev/zero | tail -c 200000000 | wc -c
