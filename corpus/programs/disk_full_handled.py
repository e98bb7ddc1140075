# cause: success
# near-miss of: disk_full
# exit: 0
"""The log cannot be written, which is no reason to end."""
import sys

try:
    with open("/dev/full", "w") as file:
        file.write("epoch 1\n")
except OSError as error:
    print("no log:", error, file=sys.stderr)
print("done")
