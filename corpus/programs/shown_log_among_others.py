# cause: index_error
# near-miss of: memory_error
# exit: 1
"""It shows the failure of another job, and then fails by itself."""

print("""job 17 ended with
Traceback (most recent call last):
  File "/home/user/train.py", line 12, in <module>
    table = bytearray(2**60)
MemoryError
its log is above""", flush=True)
names = ["train", "test"]
print(names[2])
