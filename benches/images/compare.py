"""Tidegate's image pipeline beside tf.data, PyTorch, DALI and Keras: prints tables, ratios, and which bars are met.

parts.py says what is measured, contest.py how.
"""

import argparse
import json
import pathlib
import sys

import contest
import parts


def main():
    parser = argparse.ArgumentParser(prog="benches/images/run")
    parser.add_argument("what", nargs="*", metavar="PART", help=f"{', '.join(parts.PARTS)}; all of them unless given")
    for path in ("--root", "--target", "--work"):
        parser.add_argument(path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3, help="of pipeline, augment and pack; the trainings take at most two")
    parser.add_argument("--epochs", type=int, default=3, help="of each process that feeds")
    parser.add_argument("--patience", type=float, default=30, help="seconds to wait for quiet cores before each process")
    parser.add_argument("--data", type=pathlib.Path, help="the folder with trashnet_sample")
    parser.add_argument("--no-build", action="store_true", help="take our programs as they are")
    arguments = parser.parse_args()
    if unknown := set(arguments.what) - set(parts.PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    bench = contest.Bench(arguments)
    bench.build()
    for name, part in parts.PARTS.items():
        if not arguments.what or name in arguments.what:
            bench.results[name] = part(bench)
    contest.head("Bars", "", "measured", "wanted", "")
    for bar in bench.bars:
        contest.line(bar["what"], bar["value"] or "-", bar["wanted"], bar["verdict"])
    (bench.work / "results.json").write_text(json.dumps(dict(results=bench.results, bars=bench.bars), indent=1))
    sys.exit(0 if all(bar["verdict"] == "met" for bar in bench.bars) else 1)


if __name__ == "__main__":
    main()
