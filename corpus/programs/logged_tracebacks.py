# cause: success
# near-miss of: failed
# exit: 0
"""Errors of single rows are logged, whole tracebacks of them; the job is done."""
import logging

for row in ["1", "two", "3", "four"]:
    try:
        int(row)
    except ValueError:
        logging.exception("row %r is left out", row)
print("2 rows of 4")
