"""Runs a command in a process, and where the kernel allows in a cgroup, of its own: its time and its peaks.

Three peaks, measured from outside and for everyone the same way:

- `group`: all that the kernel charged to the cgroup, with the page cache of the files that it wrote;
- `resident`: the largest process, by the kernel's own account (ru_maxrss), with the pages of files that it mapped;
- `heap`: the anonymous memory of the whole cgroup, looked at 20 times a second.

Under no limit the kernel keeps files in memory for as long as there is room, so that `group` tells what a command
took, and the smallest of the three what it needs.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

LOOK = 0.05
# A command that takes longer hangs: the slowest peer takes minutes.
LIMIT = 3600


class Failed(Exception):
    """The command ended with an error; what it said."""


def run(command):
    """The command's output and its figures. This process must stay small: a child's ru_maxrss starts with ours."""
    command = [str(word) for word in command]
    with cgroup() as group, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        started, heap = time.perf_counter(), 0
        process = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True, preexec_fn=lambda: group and enter(group))
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - started > LIMIT:
                os.killpg(process.pid, signal.SIGKILL)
            heap = max(heap, anonymous(group))
            time.sleep(LOOK)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise Failed(reason(errors.read().decode(errors="replace")) or f"ended with {process.returncode} after {seconds:.0f} s")
        peaks = dict(group=group_peak(group), resident=usage.ru_maxrss * 1024, heap=heap or None)
        return out.read().decode(), dict(seconds=seconds, peaks=peaks)


def reason(text):
    """Tidegate's line that begins with `error`, or the last one, where Python names the exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[-1] if lines else "")


def need(peaks):
    """The least memory that a command can be said to need: the smallest of its peaks."""
    return min(peak for peak in peaks.values() if peak)


@contextlib.contextmanager
def cgroup():
    """A fresh memory cgroup below our own, without a limit; None where we may not make one."""
    path = None
    with contextlib.suppress(OSError):
        path = own_cgroup() / f"tables-{os.getpid()}-{time.monotonic_ns()}"
        path.mkdir()
        if not peak_file(path):
            path.rmdir()
            path = None
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path and path.rmdir()


def own_cgroup():
    """The folder of our memory cgroup: version 1 where the memory controller is there, else version 2."""
    folders = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        folders[controllers] = path.lstrip("/")
    for controllers in folders:
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory") / folders[controllers]
    return pathlib.Path("/sys/fs/cgroup") / folders[""]


def enter(group):
    (group / "cgroup.procs").write_text("0")


def peak_file(group):
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        if (group / name).exists():
            return group / name
    return None


def group_peak(group):
    return int(peak_file(group).read_text()) if group else None


def anonymous(group):
    """The anonymous memory of all processes below the cgroup."""
    if not group:
        return 0
    for line in (group / "memory.stat").read_text().splitlines():
        name, value = line.split()
        if name in ("anon", "total_rss"):
            return int(value)
    return 0
