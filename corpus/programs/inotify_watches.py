# cause: failed or open_files
# near-miss of: disk_full
# exit: 1
"""Error 28 without any disk: too many watches on files."""
import errno

raise OSError(errno.ENOSPC, "inotify watch limit reached")
