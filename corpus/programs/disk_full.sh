# cause: disk_full
# exit: 1
# A tool says that there is no space, and the script ends.
set -e
echo "writing"
seq 100000 > /dev/full
echo "written"
