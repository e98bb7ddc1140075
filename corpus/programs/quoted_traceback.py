# cause: failed
# near-miss of: memory_error
# exit: 4
"""A tool that prints the log of another job, and ends with a code of its own."""
import sys

print("""last lines of job 17:
Traceback (most recent call last):
  File "/home/user/train.py", line 12, in <module>
    table = np.ones((100_000, 100_000))
numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000)
end of job 17""")
print("job 17 is not done", file=sys.stderr)
sys.exit(4)
