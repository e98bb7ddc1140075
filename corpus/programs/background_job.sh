# cause: child_oom
# grade: proven
# memory: 96MB
# needs: python3
# exit: 0
# A job in the background is killed for memory; the script goes on to its end.
python3 -c '
kept = []
while True:
    kept.append([number / 3 for number in range(5_000)])
' &
sleep 0.2
wait
echo "all done"
