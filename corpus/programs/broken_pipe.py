# cause: failed
# exit: 141
"""Whoever read its output went away."""
import os
import signal

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
reading, writing = os.pipe()
os.close(reading)
os.write(writing, b"epoch 1\n")
