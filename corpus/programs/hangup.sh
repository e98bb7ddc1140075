# cause: stopped
# after: kill=HUP 1s
# exit: 129
# The terminal went away.
echo "working"
while :; do sleep 0.05; done
