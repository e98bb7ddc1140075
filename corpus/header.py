"""The truth about a program of the corpus, as the comment lines say it that the program begins with.

    # cause: cgroup_oom         the cause that must be named; `a or b` where both are true
    # grade: proven             the least grade that is expected (any)
    # memory: 96MB              run with --memory (without)
    # pattern: leak             the pattern that must be named; `not leak`: any but this one (not judged)
    # line: 14                  the line of the program that must be named first in growth (not judged)
    # needs: numpy java         Python packages or commands, without which it is left out
    # limit: as=512M nofile=64  what the harness puts around it: see `limits` below
    # after: kill=TERM 2s       a signal so long after its first line of output, to the program itself;
                                `to=child` to its child, `to=run` to `tidegate run`
    # exit: 137                 the exit status of `tidegate run`, as a shell shows it
    # near-miss of: cgroup_oom  what it could be taken for and is not
    # slow                      takes more than ten seconds: not for `cargo test`

Programs find `tidegate` itself on the PATH. Of one that trains with it, that run is judged, as the last one.

In C, C++ and Rust the lines begin with `//`. The first line that is none of these ends the header.

Limits of the process itself are set inside of `tidegate run`: as, nofile, cpu (seconds). What a container limits is set
around it, and needs root: shm and disk (the size of /dev/shm, of a folder `disk`), pids, memory, swapped (memory beyond
which pages go to a swap file).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

KEYS = ("cause", "grade", "memory", "pattern", "line", "needs", "limit", "after", "exit", "near-miss of")
INSIDE = ("as", "nofile", "cpu")
AROUND = ("shm", "disk", "pids", "memory", "swapped")
PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn", "torch")
COMPILED = (".c", ".cpp", ".rs")


@dataclass
class After:
    """A signal that the program gets."""

    signal: str
    seconds: float
    to: str


@dataclass
class Program:
    path: Path
    causes: list[str]
    exit: int
    grade: str | None = None
    memory: str | None = None
    pattern: str | None = None
    line: int | None = None
    needs: list[str] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    after: After | None = None
    near_miss: str | None = None
    slow: bool = False

    @property
    def name(self):
        return self.path.name


def read(path):
    said, slow = {}, False
    for line in path.read_text().splitlines():
        text = re.sub(r"^(#|//) ", "", line)
        key, _, value = text.partition(": ")
        if text != line and key in KEYS:
            said[key] = value.strip()
        elif text == "slow":
            slow = True
        elif text != line and re.match(r"[a-z][a-z -]*: ", text):
            raise ValueError(f"{path.name}: {key!r} is no word of a header")
        else:
            break
    return Program(
        path=path,
        causes=said["cause"].split(" or "),
        exit=int(said["exit"]),
        grade=said.get("grade"),
        memory=said.get("memory"),
        pattern=said.get("pattern"),
        line=int(said["line"]) if "line" in said else None,
        needs=said.get("needs", "").split(),
        limits=limits(path, said.get("limit", "")),
        after=after(path, said["after"]) if "after" in said else None,
        near_miss=said.get("near-miss of"),
        slow=slow,
    )


def limits(path, text):
    found = {}
    for word in text.split():
        key, _, value = word.partition("=")
        if key not in INSIDE + AROUND:
            raise ValueError(f"{path.name}: {key!r} is no limit")
        found[key] = size(value)
    return found


def size(text):
    """`512M` is what `ulimit` and `mount` mean by it: powers of 1024."""
    factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1])
    return int(text[:-1]) * factor if factor else int(text)


def after(path, text):
    found = re.fullmatch(r"kill=([A-Z]+) ([\d.]+)s(?: to=(child|run))?", text)
    if not found:
        raise ValueError(f"{path.name}: {text!r} is nothing that can be done to it")
    return After(found[1], float(found[2]), found[3] or "program")


def read_all(folder):
    return [read(path) for path in sorted(folder.iterdir()) if path.suffix in (".py", ".sh", *COMPILED)]
