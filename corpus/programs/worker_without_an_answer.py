# cause: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""A worker ends without an answer, and not for memory; the parent waits for one."""
import multiprocessing
import sys


def answer(answers):
    sys.exit("no model given")


if __name__ == "__main__":
    answers = multiprocessing.Queue()
    worker = multiprocessing.Process(target=answer, args=(answers,))
    worker.start()
    print("waiting", flush=True)
    print(answers.get())
