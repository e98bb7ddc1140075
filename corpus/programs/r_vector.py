# cause: bad_alloc
# exit: 1
"""R's own words."""
import sys

print("Error: cannot allocate vector of size 7.5 Gb", file=sys.stderr)
print("Execution halted", file=sys.stderr)
sys.exit(1)
