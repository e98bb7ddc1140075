"""Feeds images by PyTorch's DataLoader with OpenCV in two workers; prints one JSON line.

feed_torch.py IMAGES --variant area|half|plain [--augment]

`half` decodes at half the size, and `plain` resizes without antialiasing: less work than is asked for.
"""

import math
import random

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import feed


class Images(Dataset):
    def __init__(self, files, variant, augment):
        self.files, self.augment = files, augment
        self.reading = cv2.IMREAD_REDUCED_COLOR_2 if variant == "half" else cv2.IMREAD_COLOR
        # OpenCV's linear resize reads four pixels however small the result; area reads them all.
        self.resizing = cv2.INTER_LINEAR if variant == "plain" else cv2.INTER_AREA

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        pixels = cv2.resize(cv2.imread(self.files[number], self.reading), (feed.SIZE, feed.SIZE), interpolation=self.resizing)
        pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
        if self.augment:
            pixels = cv2.warpAffine(pixels, pose(), (feed.SIZE, feed.SIZE), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE)
        if random.random() < 0.5:
            pixels = cv2.flip(pixels, 1)
        return torch.from_numpy(pixels).to(torch.float32).mul_(1 / 255)


def pose():
    """Where a pixel comes from: turned, sheared and zoomed around the middle."""
    turn, shear = (math.radians(random.uniform(-most, most)) for most in (feed.ROTATION, feed.SHEAR))
    zooms = [random.uniform(1 - feed.ZOOM, 1 + feed.ZOOM) for _ in range(2)]
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    matrix = rotation @ np.array([[1, -math.sin(shear)], [0, math.cos(shear)]]) @ np.diag(zooms)
    middle = np.full(2, (feed.SIZE - 1) / 2)
    return np.column_stack([matrix, middle - matrix @ middle])


def main():
    arguments = feed.arguments("area", "half", "plain")
    # The workers are the parallelism.
    cv2.setNumThreads(0)
    torch.set_num_threads(1)
    files = sorted(map(str, arguments.images.glob("*/*.jpg")))
    images = Images(files, arguments.variant, arguments.augment)
    loader = DataLoader(images, feed.BATCH, shuffle=True, num_workers=feed.WORKERS, persistent_workers=True)
    feed.report(arguments.epochs, lambda: loader, f"PyTorch {torch.__version__}, OpenCV {cv2.__version__}")


if __name__ == "__main__":
    main()
