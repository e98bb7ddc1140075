# cause: child_oom
# grade: proven
# memory: 96MB
# needs: python3
# exit: 2
# A build tool that says in its own words and with its own status that a step was killed.
python3 -c '
kept = []
while True:
    kept.append([number / 3 for number in range(5_000)])
' 2> /dev/null
status=$?
if [ $status -ne 0 ]; then
    echo "make: *** [Makefile:12: train] Error $status" >&2
    exit 2
fi
