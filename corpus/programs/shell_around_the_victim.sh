# cause: cgroup_oom
# grade: proven
# memory: 96MB
# needs: python3
# exit: 137
# A job script: what it runs is killed, and it ends with the same status.
echo "starting"
sh -c 'python3 -c "
kept = []
while True:
    kept.append([number for number in range(10_000)])
"; exit $?'
exit $?
