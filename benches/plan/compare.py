"""Plans beside what the kernel counted, and what less memory costs: prints tables and which bars are met.

- `grid`: every job with as much memory as it likes. The plan of each run against the kernel's peak of its cgroup.
- `half`: half of that peak as the budget. It must end at the same loss, without a kill, in less than 1.4 times the time.
- `knobs`: a network with each thing changed by itself: what it saves, and what it costs.
- `third`: 30% of it. It fits, or is refused with the least budget that would do; that one works, and 10% less does not.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import jobs

ROOMY = "12GB"
PARTS = ("grid", "half", "third", "knobs")


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.root, self.target, self.work = (pathlib.Path(path) for path in (arguments.root, arguments.target, arguments.work))
        self.home, self.results, self.bars = self.work / "home", {}, []

    def build(self):
        if not self.arguments.no_build:
            subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "tidegate"], cwd=self.root, check=True)

    def train(self, job, memory):
        """The run, or why it was refused."""
        path, named = jobs.make(self.work / "data", job.data)
        options = [*named, *job.options]
        if "--target" not in options and not job.data.startswith("photos"):
            options += ["--target", "y"]
        if "layers" in options:
            at = options.index("layers")
            target = options[options.index("--target") + 1]
            file = self.work / "job.toml"
            file.write_text(f'[data]\npath = "{path}"\ntarget = "{target}"\n[model]\nkind = "network"\nlayers = {options[at + 1]}\n')
            path, options = file, options[:at] + options[at + 2 :]
        # Packs of runs before would make one run quicker than the other.
        shutil.rmtree(self.home, ignore_errors=True)
        command = [self.target / "release/tidegate", "--home", self.home, "train", path, "--json", "--memory", memory, *options]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode == 0:
            run = json.loads(done.stdout)["run"]
            return run | dict(seconds=(run["ended_ms"] - run["started_ms"]) / 1000)
        return dict(refused=done.stderr, code=done.returncode)

    def best(self, job, memory):
        """The quickest of several rounds: the peak and the loss are the same in all."""
        runs = [self.train(job, memory) for _ in range(self.arguments.rounds)]
        return min(runs, key=lambda run: run.get("seconds", 0))

    def bar(self, what, value, wanted, met):
        self.bars.append(met)
        print(f"- {what}: {value}, wanted {wanted}: **{'met' if met else 'missed'}**", flush=True)


def error(run):
    """How far the plan is above the peak; below 0 where the kernel counted more."""
    return run["needs_bytes"] / run["peak_bytes"] - 1


def least(text):
    """The least budget that a refusal names."""
    found = re.search(r"(?:needs|least|at least)[^0-9]*([\d.]+) ([kMG]B|B)", text)
    factor = dict(B=1, kB=1e3, MB=1e6, GB=1e9)
    return float(found[1]) * factor[found[2]] if found else None


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


def line(*cells):
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(title, *columns):
    print(f"\n## {title}\n")
    line(*columns)
    line(*["---"] * len(columns))


def grid(bench, chosen):
    head("With as much memory as they like", "", "planned", "kernel's peak", "off", "seconds", "loss")
    for job in chosen:
        run = bench.best(job, ROOMY)
        bench.results[job.name] = dict(plain=run)
        if "refused" in run:
            line(job.name, "-", "-", "-", "-", run["refused"].strip().splitlines()[0])
            continue
        line(job.name, megabytes(run["needs_bytes"]), megabytes(run["peak_bytes"]), f"{error(run):+.1%}", f"{run['seconds']:.1f}", f"{run['metric_value']:.5f}")


def smaller(bench, chosen, share, part):
    title = f"With {share:.0%} of that"
    head(title, "", "budget", "planned", "kernel's peak", "off", "slower", "loss", "loss before", "")
    for job in chosen:
        plain = bench.results[job.name]["plain"]
        if "refused" in plain:
            continue
        budget = int(plain["peak_bytes"] * share)
        run = bench.best(job, budget)
        bench.results[job.name][part] = run
        if "refused" in run:
            needed = least(run["refused"])
            said = next((text for text in run["refused"].splitlines() if "error" in text), run["refused"].strip())
            words = said
            if needed and part == "third":
                works, below = bench.train(job, int(needed)), bench.train(job, int(needed * 0.9))
                run.update(works="refused" not in works, below="refused" in below)
                words = f"least {megabytes(needed)}: {'works' if run['works'] else 'does not work'}, 10% less {'is refused' if run['below'] else 'works, too'}"
            line(job.name, megabytes(budget), "-", "-", "-", "-", "-", "-", words)
            continue
        run["slower"] = run["seconds"] / plain["seconds"]
        run["killed"] = run["oom_kills"] or 0
        line(
            job.name, megabytes(budget), megabytes(run["needs_bytes"]), megabytes(run["peak_bytes"]), f"{error(run):+.1%}",
            f"{run['slower']:.2f}", f"{run['metric_value']:.5f}", f"{plain['metric_value']:.5f}", "killed" if run["killed"] else "",
        )


def knobs(bench):
    """Each knob by itself, on a network that each of them matters to."""
    for job, turned in jobs.knobs():
        plain = bench.best(job, ROOMY)
        head(f"Knobs: {job.name}", "", "kernel's peak", "saved", "slower", "loss")
        line("plain", megabytes(plain["peak_bytes"]), "-", "1.00", f"{plain['metric_value']:.5f}")
        for options in turned:
            name = " ".join(options)
            run = bench.best(dataclasses.replace(job, options=[*job.options, *options]), ROOMY)
            if "refused" in run:
                line(name, "-", "-", "-", run["refused"].strip().splitlines()[0])
                continue
            saved, slower = 1 - run["peak_bytes"] / plain["peak_bytes"], run["seconds"] / plain["seconds"]
            line(name, megabytes(run["peak_bytes"]), f"{saved:.0%}", f"{slower:.2f}", f"{run['metric_value']:.5f}")


def judge(bench):
    print("\n## Bars\n")
    runs = [run for result in bench.results.values() for run in result.values() if "refused" not in run]
    errors = sorted(abs(error(run)) for run in runs)
    bench.bar("jobs", len(bench.results), "at least 40", len(bench.results) >= 40)
    bench.bar("median error of the plan", f"{statistics.median(errors):.1%}", "at most 2%", statistics.median(errors) <= 0.02)
    late = errors[min(len(errors) - 1, int(len(errors) * 0.95))]
    bench.bar("95th percentile", f"{late:.1%}", "at most 5%", late <= 0.05)
    lowest = min(error(run) for run in runs)
    bench.bar("furthest below the peak", f"{lowest:+.1%}", "no more than 2%", lowest >= -0.02)
    halves = [(name, result["half"], result["plain"]) for name, result in bench.results.items() if "half" in result]
    if halves:
        fit = [(name, run, plain) for name, run, plain in halves if "refused" not in run]
        bench.bar("half the memory: made to fit", f"{len(fit)} of {len(halves)}", "all", len(fit) == len(halves))
        bench.bar("OOM kills", sum(run["killed"] for _, run, _ in fit), "0", not any(run["killed"] for _, run, _ in fit))
        over = [name for name, run, _ in fit if run["peak_bytes"] > run["budget_bytes"]]
        bench.bar("above the line", ", ".join(over) or "none", "none", not over)
        slow = {name: run["slower"] for name, run, _ in fit if run["slower"] >= 1.4}
        bench.bar("slowed by 40% or more", slow or "none", "none", not slow)
        exact = {job.name for job in jobs.grid() if job.exact}
        # Of a loss that is next to nothing a percent says nothing.
        off = {name: (run["metric_value"] - plain["metric_value"], plain["metric_value"]) for name, run, plain in fit if name in exact}
        other = {name: f"{change:+.5f} of {loss:.5f}" for name, (change, loss) in off.items() if abs(change) > max(0.01 * loss, 0.001)}
        bench.bar("another loss where only the order of sums changed", other or "none", "none beyond 1% and 0.001", not other)
    thirds = [(name, result["third"]) for name, result in bench.results.items() if "third" in result]
    if thirds:
        refused = [(name, run) for name, run in thirds if "refused" in run]
        wrong = [name for name, run in refused if not (run.get("works") and run.get("below"))]
        bench.bar("30%: refused with another least budget than the true one", ", ".join(wrong) or "none", f"none of {len(refused)} refused", not wrong)
        killed = [name for name, run in thirds if run.get("killed")]
        bench.bar("30%: OOM kills", ", ".join(killed) or "none", "none", not killed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", nargs="*", default=[], help="jobs whose names have one of these words")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-build", action="store_true")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    bench.build()
    chosen = [job for job in jobs.grid() if not arguments.only or any(word in job.name for word in arguments.only)]
    if "grid" in arguments.parts:
        grid(bench, chosen)
    if "half" in arguments.parts:
        smaller(bench, chosen, 0.5, "half")
    if "third" in arguments.parts:
        smaller(bench, chosen, 0.3, "third")
    if "knobs" in arguments.parts:
        knobs(bench)
    if not bench.results:
        return
    (bench.work / "results.json").write_text(json.dumps(bench.results, indent=1))
    judge(bench)
    sys.exit(0 if all(bench.bars) else 1)


if __name__ == "__main__":
    main()
