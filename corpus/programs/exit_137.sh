# cause: failed
# near-miss of: cgroup_oom
# memory: 96MB
# exit: 137
# 137 by its own choice: nobody was killed.
echo "the cluster says 137"
exit 137
