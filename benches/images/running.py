"""Runs a command in a process of its own: its output, its time, what others used of the cores, and its peaks.

- `proportional`: the proportional set sizes of the process and all its children, summed, looked at every so often.
  Looking costs a large process time, some 10 ms: 20 times a second only in a run of its own whose speed does not count.
- `group`: all that the kernel charged to a cgroup, with the page cache; where asked for, under a limit that the kernel
  holds the command to.
"""

import contextlib
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tables"))

import measure

TICK = 0.02
# A command that takes longer hangs: the slowest peer takes minutes.
LIMIT = 3600
# Cores are quiet while others use at most this share of them.
QUIET = 0.1


def run(command, look=None, limit=None, patience=0):
    """The command's output and its figures.

    `look` says every how many seconds to look at its memory; `limit` is that of a cgroup in bytes; `patience` is how
    many seconds to wait for quiet cores.
    """
    wait_for_quiet(patience)
    command = [str(word) for word in command]
    with cgroup(limit) as group, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        busy, own, began = busy_seconds(), own_seconds(), time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True, preexec_fn=lambda: group and measure.enter(group))
        peak, next_look = 0, began if look else math.inf
        try:
            while process.poll() is None:
                if time.perf_counter() - began > LIMIT:
                    os.killpg(process.pid, signal.SIGKILL)
                if time.perf_counter() >= next_look:
                    peak = max(peak, sum(map(proportional, family(process.pid))))
                    next_look += look
                time.sleep(TICK)
        except BaseException:
            # Interrupted: the command goes too, with its workers.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        seconds = time.perf_counter() - began
        others = (busy_seconds() - busy - (own_seconds() - own)) / seconds / os.cpu_count()
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            said = measure.reason(errors.read().decode(errors="replace"))
            raise measure.Failed(said or f"ended with {process.returncode} after {seconds:.0f} s")
        return out.read().decode(), dict(seconds=seconds, others=max(others, 0), proportional=peak or None, group=measure.group_peak(group))


@contextlib.contextmanager
def cgroup(limit):
    """A fresh cgroup with a limit; None where none is asked for."""
    if limit is None:
        yield None
        return
    with measure.cgroup() as group:
        if not group:
            raise measure.Failed("unavailable: no memory cgroup may be made here")
        for name in ("memory.max", "memory.limit_in_bytes"):
            if (group / name).exists():
                (group / name).write_text(str(limit))
        yield group


def family(process):
    """The process and all its children."""
    found = [process]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                found += map(int, pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text().split())
    return found


def proportional(process):
    """What a process takes of memory: a page that n processes share counts as its nth part."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def wait_for_quiet(patience):
    """Until others leave the cores alone for a second, or patience ends."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        busy = busy_seconds()
        time.sleep(1)
        if busy_seconds() - busy < QUIET * os.cpu_count():
            return


def busy_seconds():
    """What all processes together have used of the cores since the machine started."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """What our finished children have used, and we."""
    return sum(os.times()[:4])
