# cause: address_space
# exit: 1
"""A job that limits its own address space, as a guard against taking the machine down."""
import resource

resource.setrlimit(resource.RLIMIT_AS, (150_000_000, 150_000_000))
cache = {}
for key in range(10**9):
    cache[key] = bytes(100_000)
