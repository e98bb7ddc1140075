# cause: failed
# near-miss of: missing_file
# exit: 3
# An old file that is not there to be removed has nothing to do with the end.
rm old.log
cat settings.local
echo "checking the table"
echo "row 7: value out of bounds" >&2
exit 3
