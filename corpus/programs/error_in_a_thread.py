# cause: success
# near-miss of: failed
# exit: 0
"""A thread fails with a traceback that nobody asked for; the program ends well."""
import threading


def work():
    raise RuntimeError("the thread has a problem")


thread = threading.Thread(target=work)
thread.start()
thread.join()
print("done")
