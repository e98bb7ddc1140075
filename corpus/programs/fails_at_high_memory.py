# cause: failed
# near-miss of: cgroup_oom
# memory: 128MB
# exit: 1
"""An error of its own while nearly all memory is taken."""

table = bytearray(b"x") * 112_000_000
raise ValueError(f"expected 7 bytes, found {len(table)}")
