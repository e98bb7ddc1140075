# cause: child_oom
# grade: proven
# memory: 64MB
# exit: 0
# One part of a pipeline is killed for memory; the shell only looks at the last part.
head -c 300000000 /dev/zero | tail -c 200000000 | wc -c
echo "counted"
