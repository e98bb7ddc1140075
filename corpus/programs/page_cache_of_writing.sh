# cause: success
# near-miss of: cgroup_oom
# memory: 64MB
# pattern: not leak
# exit: 0
# A file of 200 MB copied with 64 MB of memory.
head -c 200000000 /dev/zero > one
cp one two
cmp one two && echo "the same"
