# cause: hardware or failed
# exit: 1
"""A disk that cannot be read."""
import errno
import os

raise OSError(errno.EIO, os.strerror(errno.EIO), "/data/train.parquet")
