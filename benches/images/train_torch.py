"""Trains the small CNN in PyTorch from a DataLoader with OpenCV in two workers; prints one JSON line.

train_torch.py IMAGES [--validation FOLDER] [--size SIDE] [--epochs N] [--seed N] [--channels-last]
"""

import random

import cv2
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import training


class Images(Dataset):
    def __init__(self, folder, size, flip):
        self.size, self.flip = size, flip
        self.classes = sorted(path.name for path in folder.iterdir())
        self.files = [(str(file), label) for label, name in enumerate(self.classes) for file in sorted((folder / name).iterdir())]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        file, label = self.files[number]
        pixels = cv2.resize(cv2.imread(file), (self.size, self.size), interpolation=cv2.INTER_AREA)
        pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
        if self.flip and random.random() < 0.5:
            pixels = cv2.flip(pixels, 1)
        return torch.from_numpy(pixels).permute(2, 0, 1).to(torch.float32).mul_(1 / 255), label


def network(side, classes):
    layers, channels = [], 3
    for filters in training.FILTERS:
        layers += [nn.Conv2d(channels, filters, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)]
        channels, side = filters, side // 2
    dense = nn.Linear(channels * side * side, training.UNITS)
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(training.DROPOUT), dense, nn.ReLU(), nn.Linear(training.UNITS, classes))


def accuracy(model, loader, layout):
    model.eval()
    with torch.no_grad():
        right = sum((model(pixels.to(memory_format=layout)).argmax(1) == labels).sum().item() for pixels, labels in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    arguments = training.arguments()
    torch.set_num_threads(training.WORKERS)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    watch = training.Watch()
    images = Images(arguments.images, arguments.size, flip=True)
    # Threads of OpenCV's own would only be in the workers' way.
    load = dict(num_workers=training.WORKERS, persistent_workers=True, worker_init_fn=lambda worker: cv2.setNumThreads(0))
    loader = DataLoader(images, training.BATCH, shuffle=True, **load)
    judges = arguments.validation and DataLoader(Images(arguments.validation, arguments.size, flip=False), training.BATCH, **load)
    layout = torch.channels_last if arguments.channels_last else torch.contiguous_format
    model = network(arguments.size, len(images.classes)).to(memory_format=layout)
    optimizer, loss_of = torch.optim.Adam(model.parameters(), training.RATE), nn.CrossEntropyLoss()
    for _ in range(arguments.epochs):
        watch.start()
        for pixels, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(pixels.to(memory_format=layout)), labels).backward()
            optimizer.step()
        watch.end()
        if judges:
            watch.judge(lambda: accuracy(model, judges, layout))
    watch.report(f"PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
