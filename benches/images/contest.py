"""How contestants are run: their commands, the rounds that they take in turn, the bars, and the tables."""

import json
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

import running
from running import measure


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.root, self.target, self.work = (pathlib.Path(path) for path in (arguments.root, arguments.target, arguments.work))
        self.results, self.bars, self.unavailable = {}, [], {}

    # Ours: the only part that knows its command lines.

    def build(self):
        """Builds ours; libjpeg-turbo's program may be missing, ours may not."""
        if not self.arguments.no_build:
            for what in (["-p", "tidegate"], ["-p", "tidegate-data", "--example", "image_feed"]):
                subprocess.run(["cargo", "build", "--release", "--quiet", *what], cwd=self.root, check=True)

    def image_feed(self, images, *options):
        return [self.target / "release/examples/image_feed", images, *options]

    def train(self, images, home, *options, **measuring):
        """A training: its run, and how each epoch was fed."""
        tidegate = [self.target / "release/tidegate", "--home", home]
        run = self.measured([*tidegate, "train", images, "--json", *options], json.loads, **measuring)
        if "failed" not in run:
            report = home / "runs" / run["run"]["id"] / "model/report.json"
            run["fed"] = json.loads(report.read_text()).get("fed", [])
            shown = subprocess.run([*map(str, tidegate), "show", run["run"]["id"], "--json"], capture_output=True, check=True)
            run["accuracies"] = [metric["value"] for metric in json.loads(shown.stdout)["metrics"] if metric["name"] == "accuracy"]
        return run

    # The peers.

    def peer(self, script, *options):
        return [sys.executable, HERE / script, *options]

    def turbo(self, images, epochs):
        """Bare libjpeg-turbo, built where its tools are."""
        program = self.work / "turbo/release/turbo"
        if "turbo" not in self.unavailable and not self.arguments.no_build:
            manifest = HERE / "turbo/Cargo.toml"
            done = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", self.work / "turbo"], capture_output=True, text=True)
            self.unavailable["turbo"] = f"unavailable: {measure.reason(done.stderr)}" if done.returncode else None
        why = self.unavailable.get("turbo") or (None if program.exists() else "unavailable: it is not built")
        return why or [program, images, epochs]

    def uninstalled(self, packages):
        """Why a peer could not be installed, if so."""
        for line in (self.work / "venv/installed").read_text().splitlines():
            name, _, why = line.partition(" ")
            if name in packages:
                return f"unavailable: {why}"
        return None

    # All of them.

    def measured(self, command, read, **measuring):
        """What the command printed, as `read` takes it, with its figures; a command that is a text says why there is none."""
        if isinstance(command, str):
            return dict(failed=command)
        try:
            out, figures = running.run(command, patience=self.arguments.patience, **measuring)
        except measure.Failed as why:
            return dict(failed=str(why))
        return figures | read(out)

    def rounds(self, contestants, rounds, tell):
        """Each contestant in turn, round by round; what each did, or its first failure."""
        results = {name: [] for name in contestants}
        for turn in range(rounds):
            for name, contest in contestants.items():
                if not any("failed" in run for run in results[name]):
                    run = contest()
                    results[name].append(run)
                    note(f"round {turn + 1}, {name}: {run.get('failed') or tell(run)}, others {run.get('others', 0):.0%}")
        return {name: [run for run in runs if "failed" in run][:1] or runs for name, runs in results.items()}

    def bar(self, what, value, wanted, met):
        """Notes whether a bar is met; a value of None could not be measured."""
        verdict = "not measured" if value is None else "met" if met else "missed"
        self.bars.append(dict(what=what, value=value, wanted=wanted, verdict=verdict))
        print(f"- {what}: {value or 'not measured'}, wanted {wanted}: **{verdict}**", flush=True)


def last_line(out):
    return json.loads(out.strip().splitlines()[-1])


def fed(out):
    """What image_feed prints."""
    opened = re.search(r"opened (\d+) images in ([\d.]+) s", out)
    epochs = re.findall(r"epoch \d+: (\d+) images, (\d+) images/s", out)
    packed = re.search(r"in ([\d.]+) s: (\d+) images/s", out)
    return dict(
        images=int(epochs[-1][0]),
        opened=float(opened[2]),
        rates=[float(rate) for _, rate in epochs],
        packing=float(packed[2]) if packed else None,
    )


def good(runs):
    return "failed" not in runs[0]


def quiet(runs):
    """Where others left the cores alone in some rounds, only those count."""
    return [run for run in runs if run["others"] <= running.QUIET] or runs


def best(runs):
    return max(rate for run in runs for rate in run["rates"])


def median(runs):
    """Of all epochs but the first of each process, which starts workers and compiles functions."""
    return statistics.median(rate for run in quiet(runs) for rate in run["rates"][1:] or run["rates"])


def others(runs):
    low, high = min(run["others"] for run in runs), max(run["others"] for run in runs)
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"


def megabytes(peak):
    return f"{peak / 1e6:.0f} MB" if peak else "-"


def head(title, *columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def line(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def note(text):
    print(text, file=sys.stderr, flush=True)
