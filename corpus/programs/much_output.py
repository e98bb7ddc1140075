# cause: success
# memory: 96MB
# exit: 0
"""A hundred thousand lines, on both streams."""
import sys

for number in range(50_000):
    print(f"row {number}: " + "x" * 60)
    print(f"warning {number}: nothing to worry about", file=sys.stderr)
