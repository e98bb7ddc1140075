"""What the peers' steps have in common: the sizes, the clock and the line that they print."""

import json
import statistics
import time

THREADS = 2
WARM_UP = 3
# case: (samples of a batch, shape of a sample, classes)
CASES = {"cnn": (32, (150, 150, 3), 10), "mlp": (1024, (100,), 2), "resnet18": (32, (64, 64, 3), 10)}


def resident_peak():
    """The largest that this process was so far, by the kernel's account."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def report(case, steps, one, base, version):
    """Runs the steps, each of which returns its loss, and prints the median of their times."""
    times = []
    for _ in range(WARM_UP + steps):
        started = time.perf_counter()
        loss = one()
        times.append(time.perf_counter() - started)
    milliseconds = 1000 * statistics.median(times[WARM_UP:])
    print(json.dumps(dict(case=case, ms=milliseconds, loss=loss, base=base, version=version)))
