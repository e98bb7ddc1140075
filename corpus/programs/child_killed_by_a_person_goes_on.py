# cause: success
# near-miss of: child_oom
# memory: 200MB
# exit: 0
"""A helper is killed once its work is done: nothing is wrong."""
import subprocess

helper = subprocess.Popen(["sleep", "60"])
helper.kill()
print("helper ended with", helper.wait())
