# cause: permission
# exit: 1
"""A file that is no program."""
import subprocess

with open("train", "w") as file:
    file.write("#!/bin/sh\necho training\n")
subprocess.run(["./train"], check=True)
