# cause: failed
# near-miss of: memory_error
# exit: 1
# Somebody looks for errors in the logs of other jobs; the script says by its code that there are some.
printf 'epoch 1\nMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)\n' > job-17.log
printf 'epoch 1\nepoch 2\n' > job-18.log
grep MemoryError job-*.log && exit 1
