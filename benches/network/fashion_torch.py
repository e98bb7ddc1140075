"""A small CNN on Fashion-MNIST in PyTorch; prints one JSON line with the accuracy on the test set after each epoch.

fashion_torch.py FOLDER --seed N [--epochs N]   reads the four gzipped IDX files of FOLDER
"""

import argparse
import gzip
import json
import pathlib
import time

import numpy as np
import torch
import torch.nn as nn

import step


def network():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def idx(path):
    """An array of an IDX file: its last magic byte tells the axes, each with a size of four bytes."""
    data = gzip.decompress(path.read_bytes())
    axes = data[3]
    sizes = np.frombuffer(data, ">u4", axes, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(sizes)


def part(folder, name):
    images = torch.from_numpy(idx(folder / f"{name}-images-idx3-ubyte.gz").astype(np.float32) / 255)
    labels = torch.from_numpy(idx(folder / f"{name}-labels-idx1-ubyte.gz").astype(np.int64))
    return images[:, None], labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()
    torch.set_num_threads(step.THREADS)
    torch.manual_seed(arguments.seed)
    x, y = part(arguments.folder, "train")
    test_x, test_y = part(arguments.folder, "t10k")

    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    accuracies, losses, seconds = [], [], 0.0
    for _ in range(arguments.epochs):
        model.train()
        total, started = 0.0, time.perf_counter()
        for rows in torch.randperm(len(x)).split(arguments.batch):
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        seconds += time.perf_counter() - started
        losses.append(total / len(x))
        model.eval()
        with torch.no_grad():
            right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in zip(test_x.split(1000), test_y.split(1000)))
        accuracies.append(right / len(test_x))
    print(json.dumps(dict(seed=arguments.seed, accuracies=accuracies, losses=losses, training_seconds=seconds, version=f"PyTorch {torch.__version__}")))


if __name__ == "__main__":
    main()
