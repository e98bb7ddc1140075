"""Tidegate's network engine beside PyTorch and Keras: prints tables, ratios and what could not be measured.

Every contestant runs in a process and, where the kernel allows, a cgroup of its own (../tables/measure.py), in turn and
in rounds, so that a noisy minute falls on all of them. A contestant that is missing or fails is named with its reason.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tables"))

import measure

# Above this, allocations are mapped and given back one by one: with it, PyTorch keeps its pages from step to step.
KEPT = ["env", "MALLOC_MMAP_THRESHOLD_=8000000000", "MALLOC_TRIM_THRESHOLD_=8000000000"]
TORCH, KERAS = [sys.executable, HERE / "step_torch.py"], [sys.executable, HERE / "step_keras.py"]
# name: (title, package, cases, words before the command, the command, words after the case)
PEERS = {
    "torch": ("PyTorch", "torch", "cnn mlp resnet18", [], TORCH, []),
    "torch-kept": ("PyTorch, pages kept", "torch", "cnn mlp resnet18", KEPT, TORCH, []),
    "torch-last": ("PyTorch, channels_last", "torch", "cnn resnet18", [], TORCH, ["--channels-last"]),
    "torch-last-kept": ("PyTorch, channels_last, pages kept", "torch", "cnn resnet18", KEPT, TORCH, ["--channels-last"]),
    "keras": ("Keras, train_on_batch", "keras", "cnn mlp resnet18", [], KERAS, []),
    "keras-function": ("Keras, tf.function", "keras", "cnn mlp resnet18", [], KERAS, ["--function"]),
}
OURS = "tidegate"
STEPS = dict(cnn=20, mlp=300, resnet18=10)
TITLES = dict(
    cnn="Small CNN at 150×150×3, batch 32, Adam",
    mlp="100→256→128→1, batch 1,024, Adam",
    resnet18="ResNet-18 at 64×64×3, batch 32, Adam",
)
THREADS = 2
# A round is quiet where others used at most this share of the cores.
QUIET = 0.1


class Bench:
    def __init__(self, arguments):
        self.root, self.work = pathlib.Path(arguments.root), pathlib.Path(arguments.work)
        self.arguments, self.complete = arguments, True
        self.missing = {}

    # Ours: the only part that knows its command lines.

    def build(self, what, *options):
        """Builds one of our programs; why it is not there, if so."""
        if what not in self.missing:
            built = None
            if not self.arguments.no_build:
                done = subprocess.run(["cargo", "build", "--release", "--quiet", *options], cwd=self.root, capture_output=True, text=True)
                built = done.stderr if done.returncode else None
            there = (self.root / "target/release" / what).exists()
            self.missing[what] = f"unavailable: {measure.reason(built)}" if built else None if there else f"unavailable: {what} is not built"
        return self.missing[what]

    def our_steps(self, case, steps):
        why = self.build("examples/network_step", "-p", "tidegate-train", "--example", "network_step")
        command = [self.root / "target/release/examples/network_step", case, "--steps", steps, "--threads", THREADS]
        return dict(failed=why) if why else self.measured(command)

    def our_fashion(self, data, seed):
        """`--model cnn` is the network of fashion_torch.py; the test files beside judge it."""
        why = self.build("tidegate", "-p", "tidegate")
        if why:
            return dict(failed=why)
        tidegate = [self.root / "target/release/tidegate", "--home", self.work / "home"]
        network = ["--model", "cnn", "--batch", 128, "--epochs", self.arguments.epochs, "--seed", seed, "--memory", "400MB"]
        run = self.measured([*tidegate, "train", data, "--json", *network], "unavailable: ")
        if "failed" in run:
            return run
        shown = subprocess.run([*map(str, tidegate), "show", run["run"]["id"], "--json"], capture_output=True, check=True)
        accuracies = [metric["value"] for metric in json.loads(shown.stdout)["metrics"] if metric["name"] == "accuracy"]
        return run | dict(accuracies=accuracies, training_seconds=run["seconds"])

    # The peers.

    def peer(self, name, case, steps):
        _, package, _, before, command, after = PEERS[name]
        return self.uninstalled(package) or self.measured([*before, *command, case, "--steps", steps, *after])

    def peer_fashion(self, data, seed):
        command = [sys.executable, HERE / "fashion_torch.py", data, "--seed", seed, "--epochs", self.arguments.epochs]
        return self.uninstalled("torch") or self.measured(command)

    def uninstalled(self, package):
        """Why a peer could not be installed, if so."""
        for line in (self.work / "venv/installed").read_text().splitlines():
            name, _, why = line.partition(" ")
            if name.removesuffix("-cpu") in (package, "tensorflow" if package == "keras" else package):
                return dict(failed=f"unavailable: {why}")
        return None

    # All of them.

    def measured(self, command, refusal=""):
        """What the command printed as JSON, or as a last line of it, with its peaks and what others used of the cores meanwhile."""
        self.wait_for_quiet()
        busy, own = busy_seconds(), own_seconds()
        try:
            out, figures = measure.run(command)
        except measure.Failed as why:
            return dict(failed=f"{refusal}{why}")
        others = (busy_seconds() - busy - (own_seconds() - own)) / figures["seconds"] / os.cpu_count()
        return figures | printed(out) | dict(others=max(others, 0))

    def wait_for_quiet(self):
        """Until others leave the cores alone for a second, or patience ends."""
        deadline = time.monotonic() + self.arguments.patience
        while time.monotonic() < deadline:
            busy = busy_seconds()
            time.sleep(1)
            if busy_seconds() - busy < QUIET * os.cpu_count():
                return

    def rounds(self, contestants):
        """Each contestant in turn, round by round; the results of each, or its first failure."""
        results = {name: [] for name in contestants}
        for turn in range(self.arguments.rounds):
            for name, contest in contestants.items():
                if not any("failed" in run for run in results[name]):
                    run = contest()
                    results[name].append(run)
                    told = f"{run['ms']:.2f} ms, others {run['others']:.0%}" if "ms" in run else run["failed"]
                    print(f"round {turn + 1}, {name}: {told}", file=sys.stderr)
        for name, runs in results.items():
            failed = [run for run in runs if "failed" in run]
            self.complete &= not failed
            results[name] = failed[:1] or runs
        return results

    def wanted(self, name):
        return not self.arguments.only or name in self.arguments.only


def printed(out):
    try:
        return json.loads(out)
    except json.JSONDecodeError:
        return json.loads(out.strip().splitlines()[-1])


def busy_seconds():
    """What all processes together have used of the cores since the machine started."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """What our finished children have used, and we."""
    return sum(os.times()[:4])


def head(title, *columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def line(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def megabytes(peak):
    return f"{peak / 1e6:.0f} MB" if peak else "-"


def middle(runs, key):
    return statistics.median(key(run) for run in runs)


def quiet(runs):
    return [run for run in runs if run["others"] <= QUIET]


def peaks(runs):
    """The median peaks, cell by cell: the kernel's cgroup peak, the process's, the heap's and that before the network."""
    names = ("group", "resident", "heap")
    cells = [megabytes(middle(runs, lambda run: run["peaks"][name] or 0)) for name in names]
    return cells + [megabytes(middle(runs, lambda run: run.get("base") or 0))]


def steps(bench, case):
    count = bench.arguments.steps or STEPS[case]
    titles = {name: title for name, (title, _, cases, *_) in PEERS.items() if case in cases and bench.wanted(name)}
    contestants = {name: lambda name=name: bench.peer(name, case, count) for name in titles}
    if bench.wanted(OURS):
        titles[OURS], contestants[OURS] = "Tidegate", lambda: bench.our_steps(case, count)
    results = bench.rounds(contestants)
    good = {name: runs for name, runs in results.items() if "failed" not in runs[0]}
    best = {name: min(run["ms"] for run in runs) for name, runs in good.items()}
    # Others do not slow all contestants down alike: a round on busy cores counts only where there is no quiet one.
    median = {name: middle(quiet(runs) or runs, lambda run: run["ms"]) for name, runs in good.items()}
    columns = ("ms/step, best round", "median round", "of PyTorch's best", "of its median", "cgroup peak", "resident peak", "heap peak", "before the network", "loss", "quiet rounds", "others on the cores")
    head(f"{TITLES[case]}: {count} steps, {bench.arguments.rounds} rounds, {THREADS} threads", "", *columns)
    for name, title in titles.items():
        runs = results[name]
        if name not in good:
            line(title, runs[0]["failed"], *["-"] * (len(columns) - 1))
            continue
        ratios = [f"{of[name] / of['torch']:.3f}" if "torch" in good else "-" for of in (best, median)]
        others = f"{min(run['others'] for run in runs):.0%} to {max(run['others'] for run in runs):.0%}"
        line(title, f"{best[name]:.2f}", f"{median[name]:.2f}", *ratios, *peaks(runs), f"{runs[-1]['loss']:.4g}", f"{len(quiet(runs))} of {len(runs)}", others)
    versions = {runs[0]["version"] for runs in good.values() if "version" in runs[0]}
    print(f"\n{', '.join(sorted(versions))}.\n")
    if OURS not in contestants:
        return
    for title, prefix in (("PyTorch as installed", "torch"), ("the fastest PyTorch", "torch"), ("the faster Keras", "keras")):
        peers = [name for name in good if name.startswith(prefix)]
        peers = [name for name in peers if name == "torch"] if "installed" in title else peers
        if OURS not in good or not peers:
            print(f"- beside {title}: not measured ({results[OURS][0].get('failed', 'the peer was not measured')})")
            continue
        peer = min(peers, key=best.get)
        resident = middle(good[OURS], lambda run: run["peaks"]["resident"]) / middle(good[peer], lambda run: run["peaks"]["resident"])
        print(f"- beside {title}: {best[peer] / best[OURS]:.3g} times as fast by the best rounds, {median[peer] / median[OURS]:.3g} by the median; {resident:.3g} of its resident peak")


def fashion(bench):
    data = fashion_data(bench)
    kinds = {"torch": ("PyTorch", bench.peer_fashion), OURS: ("Tidegate", bench.our_fashion)}
    head(f"Fashion-MNIST, {bench.arguments.epochs} epochs", "", "seed", "test accuracy by epoch", "seconds of training", "cgroup peak", "resident peak", "heap peak", "others on the cores")
    runs = {}
    for seed in range(bench.arguments.seeds):
        for name, (title, contest) in kinds.items():
            if not bench.wanted(name):
                continue
            run = contest(data, seed)
            runs.setdefault(name, []).append(run)
            if "failed" in run:
                bench.complete = False
                line(title, str(seed), run["failed"], *["-"] * 5)
                continue
            accuracies = " ".join(f"{100 * accuracy:.2f}" for accuracy in run["accuracies"])
            line(title, str(seed), accuracies, f"{run['training_seconds']:.0f}", *peaks([run])[:3], f"{run['others']:.0%}")
    print()
    if all(name in runs and not any("failed" in run for run in runs[name]) for name in kinds):
        accuracy, seconds = (lambda run: run["accuracies"][-1]), (lambda run: run["training_seconds"])
        theirs, ours = runs["torch"], runs[OURS]
        print(f"- accuracy at the end above PyTorch's: {100 * (middle(ours, accuracy) - middle(theirs, accuracy)):+.2f} points; {middle(theirs, seconds) / middle(ours, seconds):.3g} times as fast")


def fashion_data(bench):
    """The folder with the IDX files: that of Debian's package, installed or unpacked here."""
    inside = "usr/share/datasets/fashion-mnist"
    installed, unpacked = pathlib.Path("/", inside), bench.work / "fashion"
    if bench.arguments.data or installed.exists():
        return bench.arguments.data or installed
    if not (unpacked / inside).exists():
        part = unpacked.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        subprocess.run(["apt-get", "--quiet", "download", "dataset-fashion-mnist"], cwd=part, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["dpkg", "-x", next(part.glob("*.deb")), part], check=True)
        shutil.rmtree(unpacked, ignore_errors=True)
        part.rename(unpacked)
    return unpacked / inside


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=[], metavar="CASE", help=f"{', '.join([*STEPS, 'fashion'])}; all of them unless given")
    parser.add_argument("--root", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", nargs="+", choices=[*PEERS, OURS], help="these contestants")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help=f"measured steps, after 3 to warm up; unless given {STEPS}")
    parser.add_argument("--epochs", type=int, default=10, help="of fashion")
    parser.add_argument("--seeds", type=int, default=2, help="of fashion")
    parser.add_argument("--data", type=pathlib.Path, help="a folder with Fashion-MNIST's four files")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for quiet cores before each process")
    parser.add_argument("--no-build", action="store_true", help="take our programs as they are")
    arguments = parser.parse_args()
    if unknown := set(arguments.what) - {*STEPS, "fashion"}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    bench = Bench(arguments)
    for case in STEPS:
        if not arguments.what or case in arguments.what:
            steps(bench, case)
    if not arguments.what or "fashion" in arguments.what:
        fashion(bench)
    sys.exit(0 if bench.complete else 1)


if __name__ == "__main__":
    main()
