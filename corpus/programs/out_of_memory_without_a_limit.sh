# cause: failed
# near-miss of: cgroup_oom
# exit: 1
# A tool that gives up before it starts: it says so itself, and nobody killed it.
echo "fatal: not enough free disk for the index" >&2
echo "note: 'Out of memory' in the log of the last run was the machine's" >&2
exit 1
