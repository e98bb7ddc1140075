"""Feeds images by NVIDIA DALI's operators for CPUs; prints one JSON line.

feed_dali.py IMAGES [--augment]
"""

import math

import numpy as np
import nvidia.dali
from nvidia.dali import fn, pipeline_def, types

import feed


def between(most, least=None, **options):
    return fn.random.uniform(range=[-most if least is None else least, most], **options)


@pipeline_def(batch_size=feed.BATCH, num_threads=feed.WORKERS, device_id=None, prefetch_queue_depth=2)
def images(folder, augment):
    files, _ = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=256, name="files")
    pixels = fn.decoders.image(files, device="cpu", output_type=types.RGB)
    pixels = fn.resize(pixels, size=[feed.SIZE, feed.SIZE], interp_type=types.INTERP_LINEAR, antialias=True)
    if augment:
        middle = [feed.SIZE / 2, feed.SIZE / 2]
        matrix = fn.transforms.combine(
            fn.transforms.scale(scale=between(1 + feed.ZOOM, 1 - feed.ZOOM, shape=2), center=middle),
            fn.transforms.shear(angles=between(feed.SHEAR, shape=2), center=middle),
            fn.transforms.rotation(angle=between(feed.ROTATION), center=middle),
        )
        # Without a fill value, what lies beyond an edge is what lies at it.
        pixels = fn.warp_affine(pixels, matrix=matrix, inverse_map=True)
    flip = fn.random.coin_flip()
    return fn.crop_mirror_normalize(pixels, dtype=types.FLOAT, output_layout="HWC", mean=[0.0] * 3, std=[255.0] * 3, mirror=flip)


def main():
    arguments = feed.arguments()
    pipeline = images(str(arguments.images), arguments.augment, seed=1)
    pipeline.build()
    steps = math.ceil(pipeline.epoch_size("files") / feed.BATCH)
    batches = lambda: (np.asarray(pipeline.run()[0].as_tensor()) for _ in range(steps))
    feed.report(arguments.epochs, batches, f"DALI {nvidia.dali.__version__}")


if __name__ == "__main__":
    main()
