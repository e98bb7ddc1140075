# cause: failed
# near-miss of: memory_error
# exit: 1
# A script shows the log of a job that has failed, and fails with it.
cat > job.log <<'END'
epoch 1 loss 0.71
Traceback (most recent call last):
  File "/home/user/train.py", line 12, in <module>
    table = load()
  File "/home/user/train.py", line 4, in load
    return bytearray(2**60)
MemoryError
END
cat job.log
exit 1
