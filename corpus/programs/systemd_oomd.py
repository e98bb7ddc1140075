# cause: oom_daemon
# exit: 137
"""systemd-oomd kills the unit for memory pressure, and its line is in the same log."""
import os
import signal
import sys

unit = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r25ac.scope"
kept = [[number / 3 for number in range(5_000)] for _ in range(200)]
print(
    f"systemd-oomd[581]: Killed {unit} due to memory pressure for /user.slice/user-1000.slice/user@1000.service"
    " being 55.71% > 50.00% for > 20s with reclaim activity",
    file=sys.stderr,
    flush=True,
)
os.kill(os.getpid(), signal.SIGKILL)
