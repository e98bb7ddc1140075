# cause: segmentation_fault
# needs: python3
# exit: 139
# A job script ends with the status of what crashed.
echo "starting"
python3 -c 'import ctypes; ctypes.string_at(0)'
exit $?
