# cause: processes
# limit: pids=60
# exit: 254
# A job in the background for every row.
for number in $(seq 500); do
    sleep 60 &
done
wait
