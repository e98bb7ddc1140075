# cause: failed
# near-miss of: address_space
# limit: as=2G
# exit: 1
"""A limit that it never comes to, and an error of its own."""

table = bytearray(20_000_000)
raise ValueError(f"expected 7 bytes, found {len(table)}")
