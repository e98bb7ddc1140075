# cause: failed
# near-miss of: processes
# exit: 1
"""Error 11 of a socket that has nothing to read yet: the same number, another meaning."""
import socket

here, there = socket.socketpair()
here.setblocking(False)
here.recv(1)
