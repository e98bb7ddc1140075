# cause: bad_alloc
# needs: node
# exit: 134
# Node comes to the limit of its own heap and gives up.
exec node --max-old-space-size=40 -e '
const kept = [];
for (;;) kept.push(new Array(10000).fill({}));
'
