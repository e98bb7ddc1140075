# cause: failed
# exit: 3
# A plain end with an error.
exit 3
