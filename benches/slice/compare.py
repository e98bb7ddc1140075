"""Tidegate's slice beside its peers on one generated table, as ratios, and its peaks under several budgets."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from peers import log_loss

HERE = pathlib.Path(__file__).parent
MB = 1_000_000


class Bench:
    def __init__(self, tidegate, work):
        self.tidegate, self.work = tidegate, pathlib.Path(work)
        self.home = self.work / "home"

    def table(self, size):
        """A made-up table of that size, written once."""
        path = self.work / f"table-{size // MB}MB.csv"
        if not path.exists():
            part = path.with_suffix(".part")
            subprocess.run([self.tidegate, "demo", "--table", part, "--size", str(size)], check=True, stdout=subprocess.DEVNULL)
            part.rename(path)
        return path

    def split(self, size, held):
        """The same table as a part to learn from and a smaller one to judge by."""
        whole = self.table(size + held)
        train, test = self.work / f"train-{size // MB}MB.csv", self.work / f"test-{size // MB}MB.csv"
        if not (train.exists() and test.exists()):
            with open(whole, "rb") as source, open(train, "wb") as first, open(test, "wb") as second:
                header = source.readline()
                first.write(header)
                second.write(header)
                left = size
                while left > 0:
                    lines = source.readlines(min(left, 1 << 24))
                    first.writelines(lines)
                    left -= sum(map(len, lines))
                for block in iter(lambda: source.read(1 << 24), b""):
                    second.write(block)
        return train, test

    def train(self, path, memory, *options):
        """Trains in a child under the limit; the run with its figures."""
        command = [self.tidegate, "--home", self.home, "train", path, "--target", "y", "--memory", memory, "--json", *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def judge(self, run, test):
        """The log loss of a run's model on a table that it has not seen."""
        import numpy as np
        import pandas as pd

        out = self.work / "predictions.csv"
        subprocess.run([self.tidegate, "--home", self.home, "predict", run, test, "--output", out, "--memory", "256MB"], check=True, capture_output=True)
        return log_loss(pd.read_csv(test, usecols=["y"])["y"].to_numpy(), np.asarray(pd.read_csv(out)["probability"]))

    def peer(self, name, train, test):
        done = subprocess.run([sys.executable, HERE / "peers.py", name, train, test], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


def speed(bench, size, repeats):
    train, test = bench.split(size, size // 20)
    warm(train)
    ours, peers = [], {"partial_fit": [], "polars_mean": []}
    for _ in range(repeats):
        # One after the other, so that a noisy minute falls on all of them.
        for name, results in peers.items():
            results.append(bench.peer(name, train, test))
        run = bench.train(train, "256MB", "--epochs", "1", "--holdout", "0")
        ours.append(dict(rows=run["run"]["rows"], seconds=run["seconds"], peak=run["run"]["peak_bytes"], resident=run["run"]["resident_peak_bytes"], id=run["run"]["id"]))
    our_loss = bench.judge(ours[-1]["id"], test)
    bytes_ = train.stat().st_size
    median = lambda results: statistics.median(r["seconds"] for r in results)
    print(f"\n## One epoch over {bytes_ / 1e9:.2f} GB of CSV, {ours[0]['rows']:,} rows of 12 numbers and a target (median of {repeats})\n")
    print("| | seconds | rows/s | MB/s | kernel peak | log loss on unseen rows |")
    print("| --- | --- | --- | --- | --- | --- |")
    row = lambda name, results, loss: print(
        f"| {name} | {median(results):.2f} | {results[0]['rows'] / median(results) / 1e6:.2f} M | {bytes_ / median(results) / 1e6:.0f} "
        f"| {max(r['peak'] for r in results) / 1e6:.0f} MB | {loss} |"
    )
    row("tidegate train, budget 256 MB", ours, f"{our_loss:.6f}")
    row("pandas chunks + SGDClassifier.partial_fit", peers["partial_fit"], f"{peers['partial_fit'][0]['log_loss']:.6f}")
    row("Polars streaming, mean of the same columns", peers["polars_mean"], "-")
    fit, mean = median(peers["partial_fit"]) / median(ours), median(peers["polars_mean"]) / median(ours)
    better = our_loss <= peers["partial_fit"][0]["log_loss"]
    print(f"\nrows/s against partial_fit: {fit:.1f} times (bar: 4), log loss {'no worse' if better else 'WORSE'}")
    print(f"time against Polars' mean: {1 / mean:.2f} of it (bar: 1)")
    return fit >= 4 and mean >= 1 and better


def memory(bench):
    print("\n## Kernel peak inside a memory cgroup of exactly the budget, two epochs or more\n")
    print("| budget | table | times | cgroup peak | resident peak | OOM kills | held by |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    peaks, held = {}, True
    for budget, size in [(128 * MB, 704 * MB), (128 * MB, 2_816 * MB), (256 * MB, 1_408 * MB), (1_000 * MB, 5_500 * MB)]:
        done = bench.train(bench.table(size), str(budget))
        run = done["run"]
        peaks[budget, size] = run["peak_bytes"]
        held &= max(run["peak_bytes"], run["resident_peak_bytes"]) <= budget and not run["oom_kills"]
        print(
            f"| {budget // MB} MB | {size / 1e9:.2f} GB | {size / budget:.1f} | {run['peak_bytes'] / 1e6:.1f} MB "
            f"| {run['resident_peak_bytes'] / 1e6:.1f} MB | {run['oom_kills']} | {done['containment']} |"
        )
    growth = peaks[128 * MB, 2_816 * MB] / peaks[128 * MB, 704 * MB]
    print(f"\nfour times the rows: {growth:.2f} of the peak")
    return held


def warm(path):
    """Reads a file once, so that all find it in the page cache."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="all", choices=["all", "speed", "memory"])
    parser.add_argument("--tidegate", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--size", type=int, default=2_000 * MB)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    bench = Bench(os.path.abspath(arguments.tidegate), arguments.work)
    good = True
    if arguments.what in ("all", "speed"):
        good &= speed(bench, arguments.size, arguments.repeats)
    if arguments.what in ("all", "memory"):
        good &= memory(bench)
    sys.exit(0 if good else 1)
