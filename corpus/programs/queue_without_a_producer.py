# cause: hang
# slow
# after: kill=INT 14s to=run
# exit: 130
"""The thread that would fill the queue has failed; the main thread waits."""
import queue
import threading

batches = queue.Queue()


def produce():
    for number in range(3):
        batches.put(number)
    raise ValueError("row 4 is broken")


threading.Thread(target=produce).start()
while True:
    print("batch", batches.get(), flush=True)
