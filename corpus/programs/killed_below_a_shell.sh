# cause: killed
# near-miss of: cgroup_oom
# memory: 200MB
# after: kill=KILL 1s to=child
# needs: python3
# exit: 137
# Somebody kills what a job script runs; the shell says "Killed" and ends with 137.
echo "starting"
python3 -c 'import time; time.sleep(60)'
exit $?
