# cause: stopped
# after: kill=INT 1s
# exit: 130
"""Ctrl-C that it catches: it says so in its own words and ends with 130."""
import sys
import time

try:
    print("working", flush=True)
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted by user", file=sys.stderr)
    sys.exit(130)
