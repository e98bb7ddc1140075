# cause: child_oom
# grade: proven
# memory: 96MB
# exit: 1
"""A data-loader worker is killed for memory; the loop says it in PyTorch's words."""
import multiprocessing
import queue


def load(batches):
    kept = []
    while True:
        kept.append([number / 3 for number in range(20_000)])
        if len(kept) < 3:
            batches.put(len(kept))


if __name__ == "__main__":
    batches = multiprocessing.Queue()
    worker = multiprocessing.Process(target=load, args=(batches,), daemon=True)
    worker.start()
    while True:
        try:
            print("batch", batches.get(timeout=0.5), flush=True)
        except queue.Empty as empty:
            if worker.is_alive():
                continue
            raise RuntimeError(f"DataLoader worker (pid(s) {worker.pid}) exited unexpectedly") from empty
