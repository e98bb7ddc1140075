# cause: processes
# exit: 1
"""A library that starts a thread for every core, in its own words."""
import sys

for thread in range(1, 4):
    print(
        f"OpenBLAS blas_thread_init: pthread_create failed for thread {thread} of 64: Resource temporarily unavailable",
        file=sys.stderr,
    )
print("OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max", file=sys.stderr)
sys.exit(1)
