"""Running a command under `tidegate run` in a folder and a home of its own, and asking `tidegate why`."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from header import AROUND

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")).resolve()
WORK = TARGET / "corpus"
# No program takes half of this, even on a busy machine.
PATIENCE = 90


@dataclass
class Watched:
    """What became of a command under `tidegate run`."""

    # As a shell shows it: 128 and the number of the signal that ended it.
    exit: int
    verdict: dict
    run: dict
    # What it left behind, if so: processes, cgroups.
    left: list[str]


@contextmanager
def place():
    """A folder to work in, on a disk: what is written to a tmpfs counts as memory."""
    folder = WORK / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        yield Path(name)


def signals_as_usual():
    """Whoever is started in the background ignores some signals, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def watch(binary, command, folder, memory=None, limits=None, after=None, python=None):
    """Runs a command to its end and asks why it ended."""
    limits = limits or {}
    inside = [f"--{key}={limits[key]}:" for key in ("as", "nofile", "cpu") if key in limits]
    around = [f"{key}={limits[key]}" for key in AROUND if key in limits]
    whole = [str(binary), "run", *(["--memory", memory] if memory else []), "--"]
    whole += ["prlimit", *inside, *command] if inside else command
    if around:
        whole = [str(HERE / "within"), *around, "--", *whole]
    environment = os.environ | {"TIDEGATE_HOME": str(folder / "home")}
    # Threads of several programs that spin for each other on few cores get nowhere.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    # Programs may train, too.
    folders = [Path(binary).parent, *([Path(python).parent] if python else [])]
    environment["PATH"] = ":".join([*map(str, folders), environment["PATH"]])
    work = folder / "work"
    work.mkdir()
    with open(folder / "stderr", "wb") as errors:
        started = subprocess.Popen(
            whole, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        spoke = threading.Event()
        reader = threading.Thread(target=swallow, args=(started.stdout, spoke), daemon=True)
        reader.start()
        if after and spoke.wait(PATIENCE):
            time.sleep(after.seconds)
            send(started.pid, after)
        try:
            status = started.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            started.terminate()
            try:
                started.wait(10)
            except subprocess.TimeoutExpired:
                started.kill()
            raise TimeoutError(f"did not end within {PATIENCE} s") from None
        reader.join(5)
    told = subprocess.run([str(binary), "why", "--json"], cwd=work, env=environment, capture_output=True, text=True)
    if told.returncode != 0:
        said = (folder / "stderr").read_text(errors="replace") + told.stderr
        raise RuntimeError(f"tidegate why ended with {told.returncode}: {said.strip()[-500:]}")
    answer = json.loads(told.stdout)
    exit = 128 - status if status < 0 else status
    return Watched(exit, answer["verdict"], answer["run"], left_behind(work, answer["run"]))


def swallow(output, spoke):
    while output.read1(65536):
        spoke.set()


def send(pid, after):
    number = signal.Signals["SIG" + after.signal]
    deadline = time.monotonic() + 5
    for _ in range({"run": 0, "program": 1, "child": 2}[after.to]):
        while not (below := children(pid)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"process {pid} has no child to send {number.name} to")
            time.sleep(0.01)
        pid = min(below)
    os.kill(pid, number)


def children(pid):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name may hold blanks and parentheses; the parent is the second word after it.
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def left_behind(work, run):
    """Processes that work there and cgroups of the run, half a second after its end."""
    for attempt in range(6):
        time.sleep(0.1 if attempt else 0)
        processes = [entry.name for entry in Path("/proc").glob("[0-9]*") if cwd(entry) == str(work)]
        groups = [run["cgroup"]] if run.get("cgroup") and os.path.exists(run["cgroup"]) else []
        if not processes and not groups:
            return []
    return [f"process {pid}" for pid in processes] + [f"cgroup {group}" for group in groups]


def cwd(process):
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return None


def default_binary():
    return TARGET / "release" / "tidegate"


def missing(binary):
    """Why nothing can be run, if so."""
    if not os.access(binary, os.X_OK):
        return f"{binary} is not there: build it with `cargo build --release`, or name one with --binary"
    if shutil.which("prlimit") is None:
        return "prlimit is not there: it is part of util-linux"
    return None
