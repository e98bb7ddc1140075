# cause: open_files
# limit: nofile=64
# exit: 1
"""Connections that are never closed."""
import socket

sockets = []
while True:
    sockets.append(socket.socket())
