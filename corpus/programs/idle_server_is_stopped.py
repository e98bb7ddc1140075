# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""A server without visitors: nothing moves, and nothing is wrong."""
import socket

server = socket.create_server(("127.0.0.1", 0))
print("listening on", server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    connection.close()
