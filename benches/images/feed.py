"""What the peers that feed images share: the work that is asked for, and the report of how fast it went."""

import argparse
import json
import pathlib
import time

SIZE, BATCH, WORKERS = 150, 32, 2
# The ranges of the augmented case: degrees, degrees, and a share. Beyond an edge, its pixels go on.
ROTATION, SHEAR, ZOOM = 20, 11.5, 0.2


def arguments(*variants):
    parser = argparse.ArgumentParser()
    parser.add_argument("images", type=pathlib.Path, help="a folder of class folders")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--augment", action="store_true", help="rotation, zoom and shear besides the flip")
    parser.add_argument("--variant", choices=variants, default=variants[0] if variants else None)
    return parser.parse_args()


def report(epochs, batches, version):
    """Draws every epoch of `batches()` and prints the images per second of each as one line of JSON."""
    rates, seen = [], set()
    for _ in range(epochs):
        began, images, total = time.perf_counter(), 0, 0.0
        for batch in batches():
            images += len(batch)
            total += float(batch[0, 75, 75, 0])
            seen.add((*batch.shape[1:], "float32" in str(batch.dtype)))
        rates.append(images / (time.perf_counter() - began))
    assert seen == {(SIZE, SIZE, 3, True)}, f"batches of {seen}"
    print(json.dumps(dict(rates=rates, images=images, mean=total / (images / BATCH), version=version)))
