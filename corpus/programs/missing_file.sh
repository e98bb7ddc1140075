# cause: missing_file
# exit: 1
# The same for a tool.
set -e
echo "counting"
wc -l data/train.csv
