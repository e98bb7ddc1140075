# cause: hang
# slow
# after: kill=KILL 14s
# exit: 137
"""A process is joined before its queue is read: it cannot end while its pipe is full. Somebody loses patience."""
import multiprocessing


def answer(answers):
    answers.put("x" * 10_000_000)


if __name__ == "__main__":
    answers = multiprocessing.Queue()
    worker = multiprocessing.Process(target=answer, args=(answers,))
    worker.start()
    print("waiting", flush=True)
    worker.join()
    print(len(answers.get()))
