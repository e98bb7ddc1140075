# cause: failed
# near-miss of: child_oom
# memory: 96MB
# exit: 1
"""A tool that the program calls fails by itself."""
import subprocess

subprocess.run(["sh", "-c", "echo 'no such model' >&2; exit 9"], check=True)
