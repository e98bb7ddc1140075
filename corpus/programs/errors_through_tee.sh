# cause: memory_error
# exit: 1
# What Python says goes through a pipe into a log, and out as ordinary output.
set -o pipefail
python3 -c 'print(len(bytearray(2**60)))' 2>&1 | tee job.log
