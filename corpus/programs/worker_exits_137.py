# cause: failed
# near-miss of: child_oom
# memory: 200MB
# exit: 1
"""A worker ends with 137 by its own choice."""
import os
import subprocess
import sys

status = subprocess.run([sys.executable, "-c", "import os; os._exit(137)"]).returncode
print("the worker ended with", status, file=sys.stderr)
os._exit(1)
