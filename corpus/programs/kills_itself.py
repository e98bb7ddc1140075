# cause: killed
# near-miss of: cgroup_oom
# memory: 200MB
# exit: 137
"""SIGKILL from its own hand."""
import os
import signal

print("bye", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
