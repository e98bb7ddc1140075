# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 1
"""A tool that the program calls is killed for memory: CalledProcessError."""
import subprocess
import sys

code = "kept = []\nwhile True: kept.append([number / 3 for number in range(5_000)])"
subprocess.run([sys.executable, "-c", code], check=True)
