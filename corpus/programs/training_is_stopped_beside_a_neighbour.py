# cause: stopped
# grade: proven
# near-miss of: memory_taken
# limit: memory=160M
# exit: 143
"""Somebody stops a training beside a neighbour that has taken much of its container's memory, and left it enough."""
import os
import subprocess
import sys
import time


def array(name, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values)


samples, size = 200_000, 144
array("x.npy", "|u1", (samples, size), os.urandom(samples * size))
array("y.npy", "|u1", (samples,), bytes(i % 3 for i in range(samples)))
with open("job.toml", "w") as file:
    file.write('memory = "100MB"\n[data]\npath = "x.npy"\n[model]\nkind = "network"\nlayers = [{ dense = "classes" }]\n')
    file.write("[train]\nepochs = 10000\nbatch = 256\nthreads = 1\n")
training = subprocess.Popen(["tidegate", "train", "job.toml"])
time.sleep(1.5)
taken = []
while len(taken) < 40:
    taken.append(bytearray(b"x") * 2_000_000)
    time.sleep(0.05)
training.terminate()
sys.exit(training.wait())
