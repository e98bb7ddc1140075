# cause: missing_file
# exit: 127
# A command that is not there.
echo "starting"
a_command_that_nobody_has --epochs 3
