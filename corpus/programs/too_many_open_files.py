# cause: open_files
# limit: nofile=64
# exit: 1
"""Files that are opened and never closed."""

files = []
for number in range(1_000):
    files.append(open(__file__))
