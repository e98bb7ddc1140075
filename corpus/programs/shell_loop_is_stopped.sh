# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
# A script that looks every few seconds whether a file has come.
echo "waiting for a file"
while [ ! -e arrived ]; do sleep 2; done
