# cause: success
# near-miss of: missing_file
# exit: 0
# A step that may fail does; the script says so and goes on.
cat settings.local || echo "no local settings"
rm old.log 2> /dev/null
python_that_nobody_has --version || echo "trying another"
echo "done"
