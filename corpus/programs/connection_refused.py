# cause: failed
# exit: 1
"""Nobody listens there."""
import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
socket.create_connection(("127.0.0.1", port))
