# cause: success
# near-miss of: cgroup_oom
# memory: 96MB
# exit: 0
# A report about other runs: the words are there, the deed is not.
echo "Killed"
echo "Out of memory: Killed process 4711 (python3) total-vm:72008kB, anon-rss:62208kB"
echo "Memory cgroup out of memory: Killed process 4712 (python3)" >&2
echo "MemoryError"
echo "2 runs were killed, 0 failed otherwise"
