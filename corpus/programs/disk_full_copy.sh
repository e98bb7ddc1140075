# cause: disk_full
# limit: disk=2M
# exit: 1
# A copy that does not fit.
head -c 5000000 /dev/zero > table.bin
cp table.bin disk/
