# cause: success
# near-miss of: address_space
# limit: as=2G
# exit: 0
"""A limit that it never comes to."""

table = bytearray(20_000_000)
print(len(table))
