# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It waits for a tool that waits for a time: both do what they should."""
import subprocess

print("calling", flush=True)
subprocess.run(["sleep", "3600"])
