# cause: failed
# near-miss of: cgroup_oom
# exit: 1
"""Warnings about memory from a library, and an end that has nothing to do with them."""
import sys

print("W external/xla/tsl/framework/cpu_allocator_impl.cc:83] Allocation of 1073741824 exceeds 10% of free system memory.",
      file=sys.stderr)
print("UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max number of worker is 2",
      file=sys.stderr)
raise KeyError("label")
