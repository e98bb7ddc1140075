# cause: child_oom
# grade: proven
# memory: 96MB
# slow
# after: kill=INT 12s to=run
# exit: 130
"""The only worker that would fill a queue is killed for memory; the parent waits."""
import multiprocessing


def load(batches):
    kept = []
    while True:
        kept.append([number / 3 for number in range(5_000)])
        if len(kept) < 3:
            batches.put(len(kept))


if __name__ == "__main__":
    batches = multiprocessing.Queue()
    worker = multiprocessing.Process(target=load, args=(batches,), daemon=True)
    worker.start()
    while True:
        print("batch", batches.get(), flush=True)
