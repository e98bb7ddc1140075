# cause: success
# near-miss of: open_files
# limit: nofile=64
# exit: 0
"""Too many open files, which it copes with by closing some."""

files = []
while True:
    try:
        files.append(open(__file__))
    except OSError as error:
        print(error, "- closing", len(files), flush=True)
        break
for file in files:
    file.close()
print("done")
