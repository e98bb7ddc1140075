# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""The main thread waits for one that serves whoever comes."""
import socket
import threading


def serve():
    while True:
        connection, _ = server.accept()
        connection.close()


server = socket.create_server(("127.0.0.1", 0))
thread = threading.Thread(target=serve)
thread.start()
print("listening", flush=True)
thread.join()
