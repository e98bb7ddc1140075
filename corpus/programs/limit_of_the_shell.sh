# cause: address_space
# needs: python3
# exit: 1
# A job script that sets the limit itself, as job scripts do.
ulimit -v 200000
python3 -c '
kept = []
while True:
    kept.append(bytearray(1 << 20))
'
