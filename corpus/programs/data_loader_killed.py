# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 1
"""As PyTorch says it from its handler of SIGCHLD."""
import os
import signal


def killed(number, frame):
    raise RuntimeError(f"DataLoader worker (pid {worker}) is killed by signal: Killed. ")


signal.signal(signal.SIGCHLD, killed)
worker = os.fork()
if worker == 0:
    kept = []
    while True:
        kept.append([number / 3 for number in range(5_000)])
while True:
    signal.pause()
