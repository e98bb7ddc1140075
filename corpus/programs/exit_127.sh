# cause: failed
# near-miss of: missing_file
# exit: 127
# A code of its own that looks like a command that is not there.
echo "127 rows are wrong"
exit 127
