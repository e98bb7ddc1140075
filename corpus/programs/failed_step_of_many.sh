# cause: missing_file
# exit: 1
# One step fails and is named; the ones before and after it are fine.
set -e
echo "step 1: Killed 0 old processes"
mkdir -p parts
echo "step 2: merging"
cat parts/a.csv parts/b.csv > merged.csv
echo "step 3: training"
