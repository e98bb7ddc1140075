"""Tidegate beside its peers on one large table and on real ones: prints tables, ratios and whether each bar is held.

Every command runs in a process and, where the kernel allows, a cgroup of its own (measure.py). All read the same files
from the page cache. A bar on memory takes the largest of Tidegate's peaks and the smallest of the peer's. A peer that
cannot be installed or fails is named with its reason, and its bars count as not held.
"""

import argparse
import json
import pathlib
import sys

import measure
import real as real_sets

HERE = pathlib.Path(__file__).parent
PACKAGES = {"vw_text": "vowpalwabbit", "vw_text_piped": "vowpalwabbit", "xgboost_memory": "xgboost", "xgboost_external": "xgboost", "lightgbm_memory": "lightgbm"}


class Bench:
    def __init__(self, arguments):
        self.tidegate = pathlib.Path(arguments.tidegate).absolute()
        self.work, self.data = pathlib.Path(arguments.work), pathlib.Path(arguments.data)
        self.rows, self.repeats = arguments.rows, arguments.repeats
        self.reuse, self.measured = arguments.reuse_peers, self.work / "peers.json"
        self.held = True

    # Tidegate: the only part that knows its command line.

    def train(self, path, target, *options):
        """Trains with `options`; the run, its time from start to end and its peaks."""
        command = [self.tidegate, "--home", self.work / "home", "train", path, "--target", target, "--json", *options]
        try:
            out, figures = measure.run(command)
        except measure.Failed as why:
            return dict(failed=str(why))
        told = json.loads(out)
        figures["peaks"]["told"] = told["run"]["peak_bytes"]
        return dict(**figures, id=told["run"]["id"], plan=told["run"]["needs_bytes"], held_by=told["containment"])

    def judged(self, run, task, test, target):
        """The run with the scores of its model on rows that it has not seen."""
        if "failed" in run:
            return run
        predictions = self.work / "predictions.csv"
        try:
            measure.run([self.tidegate, "--home", self.work / "home", "predict", run["id"], test, "--output", predictions])
            return run | self.scores(task, test, target, predictions)
        except measure.Failed as why:
            return dict(failed=f"trained, but not judged: {why}")

    # The peers and the data.

    def python(self, script, *words):
        """Apart, so that this process stays small (measure.run)."""
        return measure.run([sys.executable, HERE / script, *words])[0]

    def scores(self, task, test, target, predictions):
        return json.loads(self.python("judge.py", task, test, target, predictions))

    def table(self, rows):
        """The folder with a table of so many rows, written once."""
        folder = self.work / f"rows-{rows}"
        if not folder.exists():
            self.python("table.py", rows, folder)
        return folder

    def peer(self, name, folder, judge=True):
        """A peer's figures, from an earlier time if asked for."""
        key, known = f"{name} {folder.name}", json.loads(self.measured.read_text()) if self.measured.exists() else {}
        if self.reuse and key in known:
            return known[key]
        predictions = folder / f"{name}.npy"
        try:
            out, figures = measure.run([sys.executable, HERE / "peers.py", name, folder, predictions])
        except measure.Failed as why:
            return dict(failed=self.unavailable(name) or str(why))
        result = figures | json.loads(out)
        if judge:
            result |= self.scores("binary", folder / "test.parquet", "target", predictions)
        known[key] = result
        self.measured.write_text(json.dumps(known, indent=1))
        return result

    def unavailable(self, name):
        """Why a peer could not be installed, if so."""
        for line in (self.work / "venv/installed").read_text().splitlines():
            package, _, why = line.partition(" ")
            if package == PACKAGES.get(name):
                return f"unavailable: {why}"
        return None

    def rounds(self, contestants):
        """Each contestant in turn, `repeats` times, so that a noisy minute falls on all of them; the median by time."""
        results = {name: [] for name in contestants}
        for _ in range(self.repeats):
            for name, contest in contestants.items():
                results[name].append(contest())
        for name, runs in results.items():
            failed = [run for run in runs if "failed" in run]
            results[name] = failed[0] if failed else sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]
        return results

    def bar(self, claim, parts, figure, holds):
        """Prints one bar: its figure, or why there is none. `parts` are the results that it needs."""
        missing = [part["failed"] for part in parts if "failed" in part]
        if missing:
            print(f"- {claim}: not measured ({missing[0]})")
            self.held = False
            return
        value = figure(*parts)
        good = holds(value)
        self.held &= good
        print(f"- {claim}: {value:.4g}, {'held' if good else 'MISSED'}")


def head(title, *columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def line(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def megabytes(peak):
    return f"{peak / 1e6:.0f} MB" if peak else "-"


def peak_cells(result):
    return [megabytes(result["peaks"][name]) for name in ("group", "resident", "heap")]


def largest(result):
    return max(peak for peak in result["peaks"].values() if peak)


def warm(*paths):
    """Reads files once, so that all find them in the page cache and nobody is charged for them."""
    for path in paths:
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def linear(bench):
    folder = bench.table(bench.rows)
    train, test = folder / "train.csv", folder / "test.csv"
    warm(train, test)
    options = ["--model", "linear", "--epochs", "1", "--holdout", "0", "--memory", "256MB", "--no-pack"]
    names = {
        "tidegate": "tidegate train, budget 256 MB",
        "tidegate_plain": "tidegate train, budget 256 MB, without text",
        "sgd_text": "scikit-learn partial_fit, hashed, with text",
        "sgd": "scikit-learn partial_fit, hashed, without text",
        "vw_text": "Vowpal Wabbit with text: converted, then trained",
        "vw_text_piped": "Vowpal Wabbit with text: converted in a pipe",
    }
    contestants = {name: lambda name=name: bench.peer(name, folder) for name in names if not name.startswith("tidegate")}
    ours = lambda *more: bench.judged(bench.train(train, "target", *options, *more), "binary", test, "target")
    contestants |= {"tidegate": lambda: ours(), "tidegate_plain": lambda: ours("--ignore", "text")}
    results = bench.rounds(contestants)
    size = train.stat().st_size
    head(
        f"Linear, one epoch over {size / 1e9:.2f} GB of CSV, {bench.rows - bench.rows // 10:,} rows",
        *("", "seconds", "MB/s", "cgroup peak", "resident peak", "heap peak", "log loss", "AUC"),
    )
    for name, title in names.items():
        result = results[name]
        if "failed" in result:
            line(title, result["failed"], *["-"] * 6)
            continue
        seconds = result["seconds"]
        line(title, f"{seconds:.1f}", f"{size / seconds / 1e6:.0f}", *peak_cells(result), f"{result['log_loss']:.5f}", f"{result['auc']:.5f}")
    vw = results["vw_text"]
    if "failed" not in vw:
        print(f"\nVowpal Wabbit's time is {vw['conversion']:.1f} s of conversion and {vw['training']:.1f} s of training.")
    print()
    ours, text, plain = results["tidegate"], results["sgd_text"], results["sgd"]
    faster = lambda ours, theirs: theirs["seconds"] / ours["seconds"]
    better = lambda ours, theirs: theirs["log_loss"] - ours["log_loss"]
    bench.bar("times as fast as partial_fit with text (bar: 5)", [ours, text], faster, lambda ratio: ratio >= 5)
    bench.bar("without text, times as fast as partial_fit without text (bar: 5)", [results["tidegate_plain"], plain], faster, lambda ratio: ratio >= 5)
    for name in ("vw_text", "vw_text_piped"):
        bench.bar(f"times as fast as {names[name]} (bar: 1)", [ours, results[name]], faster, lambda ratio: ratio > 1)
    for name, mine in (("sgd_text", ours), ("sgd", results["tidegate_plain"]), ("vw_text", ours)):
        bench.bar(f"log loss below that of {names[name]} (bar: 0)", [mine, results[name]], better, lambda margin: margin >= 0)
    bench.bar("largest peak in budgets (bar: 1)", [ours], lambda ours: largest(ours) / 256e6, lambda ratio: ratio <= 1)


def boost(bench):
    folder = bench.table(bench.rows)
    train, test = folder / "train.parquet", folder / "test.parquet"
    warm(train, test)
    options = ["--model", "boost", "--trees", "100", "--depth", "6", "--holdout", "0", "--memory"]
    names = {
        "small": "tidegate train, budget 512 MB",
        "large": "tidegate train, budget 4 GB",
        "xgboost_memory": "XGBoost in memory",
        "xgboost_external": "XGBoost external memory (ExtMemQuantileDMatrix)",
        "lightgbm_memory": "LightGBM in memory",
    }
    peers = ["xgboost_memory", "xgboost_external", "lightgbm_memory"]
    ours = lambda budget: bench.judged(bench.train(train, "target", *options, budget), "binary", test, "target")
    contestants = {"prepare": lambda: bench.peer("prepare", folder, judge=False)}
    contestants |= {name: lambda name=name: bench.peer(name, folder) for name in peers}
    contestants |= {"small": lambda: ours("512MB"), "large": lambda: ours("4GB")}
    results = bench.rounds(contestants)
    prepare = results["prepare"]
    head(
        f"100 trees of depth 6 from Parquet, {bench.rows - bench.rows // 10:,} rows",
        *("", "seconds from train.parquet, with preparation", "seconds on prepared data only", "cgroup peak", "resident peak", "heap peak", "AUC", "log loss"),
    )
    for name, title in names.items():
        result = results[name]
        if "failed" in result:
            line(title, result["failed"], *["-"] * 6)
            continue
        prepared = name in peers
        whole = result["seconds"] + (prepare.get("seconds", 0) if prepared else 0)
        only = f"{result['seconds']:.1f}" if prepared else "reads the raw table"
        line(title, f"{whole:.1f}", only, *peak_cells(result), f"{result['auc']:.5f}", f"{result['log_loss']:.5f}")
    if "failed" in prepare:
        print(f"\nThe peers' preparation failed: {prepare['failed']}")
    else:
        cells = ", ".join(f"{name} {megabytes(peak)}" for name, peak in prepare["peaks"].items())
        print(f"\nThe peers' preparation (categories numbered, large ones encoded by their target, streamed): {prepare['seconds']:.1f} s; peaks {cells}.")
    print("The peaks in the table are those of the training alone, to the advantage of the peers.\n")
    small, large = results["small"], results["large"]
    external, lightgbm = results["xgboost_external"], results["lightgbm_memory"]
    margin = lambda ours, theirs: ours["auc"] - theirs["auc"]
    with_preparation = lambda ours, theirs, prepare: ours["seconds"] / (theirs["seconds"] + prepare["seconds"])
    alone = lambda ours, theirs: ours["seconds"] / theirs["seconds"]
    for budget, run in (("512 MB", small), ("4 GB", large)):
        for name in ("xgboost_memory", "lightgbm_memory"):
            bench.bar(f"AUC with {budget} above that of {names[name]} (bar: -0.002)", [run, results[name]], margin, lambda gap: gap >= -0.002)
    for title, run, peer, name in (("512 MB", small, external, "XGBoost external"), ("4 GB", large, lightgbm, "LightGBM in memory")):
        bench.bar(f"time with {title} of that of {name}, with preparation (bar: 1)", [run, peer, prepare], with_preparation, lambda ratio: ratio <= 1)
        bench.bar(f"time with {title} of that of {name} on prepared data only (bar: 1)", [run, peer], alone, lambda ratio: ratio <= 1)
    peak = lambda ours, theirs: largest(ours) / measure.need(theirs["peaks"])
    bench.bar("largest peak with 512 MB of XGBoost external's smallest (bar: 0.5)", [small, external], peak, lambda ratio: ratio <= 0.5)
    group = lambda ours, theirs: ours["peaks"]["group"] / theirs["peaks"]["group"]
    if small.get("peaks", {}).get("group") and external.get("peaks", {}).get("group"):
        bench.bar("cgroup peak with 512 MB of XGBoost external's (bar: 0.5)", [small, external], group, lambda ratio: ratio <= 0.5)


def memory(bench):
    """The peak does not grow with the rows, and the plan tells it beforehand."""
    head("Peaks at one budget, by the number of rows", "", "rows", "plan", "measured peak", "plan / measured", "seconds", "held by")
    boosted = ["--model", "boost", "--trees", "10", "--depth", "6", "--holdout", "0", "--memory"]
    kinds = {
        "linear, 256 MB, CSV": ("train.csv", ["--model", "linear", "--epochs", "1", "--holdout", "0", "--no-pack", "--memory", "256MB"]),
        # The rows of all three tables are larger than this budget, so that all of them stream.
        "boost, 36 MB, Parquet": ("train.parquet", [*boosted, "36MB"]),
        # Here rows stay in memory, as far as the budget goes: the peak follows them, and the plan must tell it.
        "boost, 512 MB, Parquet": ("train.parquet", [*boosted, "512MB"]),
    }
    runs = {}
    for kind, (file, options) in kinds.items():
        for rows in (bench.rows // 16, bench.rows // 4, bench.rows):
            run = bench.train(bench.table(rows) / file, "target", *options)
            runs.setdefault(kind, []).append(run)
            if "failed" in run:
                line(kind, f"{rows - rows // 10:,}", run["failed"], *["-"] * 4)
                continue
            peak = run["peaks"]["told"]
            line(kind, f"{rows - rows // 10:,}", megabytes(run["plan"]), megabytes(peak), f"{run['plan'] / peak:.3f}", f"{run['seconds']:.1f}", run["held_by"])
    print()
    for kind, (once, four, sixteen) in runs.items():
        growth = lambda less, more: more["peaks"]["told"] / less["peaks"]["told"]
        if "512 MB" not in kind:
            for name, run in (("4", four), ("16", sixteen)):
                bench.bar(f"{kind}: peak of {name} times the rows (bar: 1.1)", [once, run], growth, lambda ratio: ratio <= 1.1)
        off = lambda *runs: max(abs(run["plan"] / run["peaks"]["told"] - 1) for run in runs)
        bench.bar(f"{kind}: plan off the measured peak by at most (bar: 0.1)", [once, four, sixteen], off, lambda error: error <= 0.1)


def real(bench):
    """Tidegate as it comes beside HistGradientBoosting as it comes."""
    head("Real tables: Tidegate's default beside scikit-learn's HistGradientBoosting", "set", "score", "tidegate", "scikit-learn", "seconds", "theirs")
    folder, results = bench.work / "real", {}
    folder.mkdir(exist_ok=True)
    for name, (target, task, ending) in real_sets.SETS.items():
        train, test, predictions = folder / f"{name}-train.{ending}", folder / f"{name}-test.{ending}", folder / f"{name}.npy"
        if not test.exists():
            if not bench.data.is_dir():
                results[name] = [dict(failed="unavailable: no folder with the real data")] * 2
                continue
            bench.python("real.py", "write", name, bench.data, train, test)
        theirs = json.loads(bench.python("real.py", "fit", name, train, test, predictions)) | bench.scores(task, test, target, predictions)
        ours = bench.judged(bench.train(train, target), task, test, target)
        results[name] = [ours, theirs]
        for score in ("auc", "accuracy", "log_loss") if task == "binary" else ("rmse", "r2"):
            mine = f"{ours[score]:.5g}" if score in ours else ours["failed"]
            line(name, score, mine, f"{theirs[score]:.5g}", f"{ours.get('seconds', 0):.1f}", f"{theirs['seconds']:.1f}")
    print()
    for name, parts in results.items():
        binary = real_sets.SETS[name][1] == "binary"
        for score in ("auc", "accuracy") if binary else ("rmse",):
            # Above 1 is better than scikit-learn for all of them.
            ratio = lambda ours, theirs: ours[score] / theirs[score] if binary else theirs[score] / ours[score]
            bench.bar(f"{name}: {score} beside scikit-learn's, more is better (bar: 0.99)", parts, ratio, lambda ratio: ratio >= 0.99)


if __name__ == "__main__":
    parts = dict(linear=linear, boost=boost, memory=memory, real=real)
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="all", choices=["all", *parts])
    parser.add_argument("--tidegate", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=8_500_000, help="of the large table, the test's tenth among them")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--reuse-peers", action="store_true", help="take the peers' figures of an earlier time")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for name, part in parts.items():
        if arguments.what in ("all", name):
            part(bench)
    sys.exit(0 if bench.held else 1)
