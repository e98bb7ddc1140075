# cause: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""The child waits for somebody to read its output, the parent for the child to end."""
import subprocess
import sys

print("calling", flush=True)
child = subprocess.Popen([sys.executable, "-c", "print('x' * 10_000_000)"], stdout=subprocess.PIPE)
child.wait()
print(len(child.stdout.read()))
