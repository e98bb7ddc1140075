# cause: open_files
# needs: python3
# exit: 1
# The same for files.
ulimit -n 32
python3 -c '
files = []
while True:
    files.append(open("/dev/null"))
'
