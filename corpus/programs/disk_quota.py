# cause: disk_full
# exit: 1
"""Not the disk is full but one's share of it."""
import errno
import os

raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/home/user/checkpoints/epoch-3.pt")
