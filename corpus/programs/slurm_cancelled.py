# cause: stopped
# near-miss of: time_limit
# exit: 143
"""A person cancels a Slurm job: the same line without a reason."""
import os
import signal
import sys
import time

print("epoch 11 loss: 0.4312", flush=True)
time.sleep(0.3)
print(
    "slurmstepd: error: *** JOB 10763635 ON c0662 CANCELLED AT 2025-10-02T14:02:37 ***",
    file=sys.stderr,
    flush=True,
)
os.kill(os.getpid(), signal.SIGTERM)
