# cause: success
# near-miss of: missing_file
# exit: 0
"""There is no checkpoint yet, so it starts from the beginning."""
import traceback

try:
    open("checkpoint.json")
except FileNotFoundError:
    traceback.print_exc()
    print("no checkpoint, starting anew")
print("done")
