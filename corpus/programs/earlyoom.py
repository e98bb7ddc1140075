# cause: oom_daemon
# grade: proven
# exit: 143
"""A watcher with earlyoom's words ends it while it grows, before the kernel would have to."""
import os
import signal
import sys
import time


def watch(victim):
    while True:
        with open(f"/proc/{victim}/statm") as file:
            resident = int(file.read().split()[1]) * 4 // 1024
        if resident > 60:
            break
        time.sleep(0.01)
    say = lambda text: print(text, file=sys.stderr, flush=True)
    say("earlyoom[612]: mem avail:   719 of  7721 MiB ( 9.31%), swap free:  742 of 7720 MiB ( 9.62%)")
    say("earlyoom[612]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%")
    say(f'earlyoom[612]: sending SIGTERM to process {victim} uid 0 "python3": badness 1181, VmRSS {resident} MiB')
    os.kill(victim, signal.SIGTERM)


if os.fork() == 0:
    watch(os.getppid())
    os._exit(0)
kept = []
while True:
    kept.append([number / 3 for number in range(5_000)])
