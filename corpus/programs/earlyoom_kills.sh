# cause: oom_daemon
# grade: proven
# needs: python3
# exit: 137
# The same with SIGKILL, in the words of newer versions; the victim is below a shell.
python3 -c '
import time
kept = [[number / 3 for number in range(5_000)] for _ in range(200)]
print("grown", flush=True)
time.sleep(60)
' &
victim=$!
sleep 1
echo "mem avail:   213 of 24103 MiB ( 0.88%), swap free:    0 of    0 MiB ( 0.00%)" >&2
echo "low memory! at or below SIGKILL limits: mem  5.00%, swap  5.00%" >&2
echo "sending SIGKILL to process $victim uid 0 \"python3\": oom_score 1337, oom_score_adj 500, VmRSS 41 MiB, cmdline \"python3 -c\"" >&2
kill -KILL $victim
wait $victim
exit $?
