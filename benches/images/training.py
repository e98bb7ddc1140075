"""What the peers that train share: the options, and the report of how long it took and how good it became."""

import argparse
import json
import pathlib
import time

BATCH, RATE, WORKERS = 32, 1e-3, 2
# The network of `tidegate train --model cnn`: a convolution and a pool each, then dropout, a dense layer and the classes.
FILTERS, DROPOUT, UNITS = (32, 64, 128), 0.25, 128


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("images", type=pathlib.Path, help="a folder of class folders")
    parser.add_argument("--validation", type=pathlib.Path, help="another, whose accuracy is told after each epoch")
    parser.add_argument("--size", type=int, default=150)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", action="store_true", help="Keras: keep decoded images in memory")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch: the layout that it recommends for CPUs")
    return parser.parse_args()


class Watch:
    """The seconds of each epoch, and of all there is from the first file on. Judging does not count."""

    def __init__(self):
        self.began, self.epochs, self.accuracies = time.perf_counter(), [], []
        self.judging = 0.0

    def start(self):
        self.started = time.perf_counter()

    def end(self):
        self.epochs.append(time.perf_counter() - self.started)

    def judge(self, accuracy):
        began = time.perf_counter()
        self.accuracies.append(accuracy())
        self.judging += time.perf_counter() - began

    def report(self, version):
        whole = time.perf_counter() - self.began - self.judging
        print(json.dumps(dict(epochs=self.epochs, whole=whole, accuracies=self.accuracies, version=version)))
