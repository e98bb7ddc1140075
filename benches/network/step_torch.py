"""Steps of one network in PyTorch; prints one JSON line.

step_torch.py CASE --steps N [--channels-last]
"""

import argparse

import torch
import torch.nn as nn

import step


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 36 * 36, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def mlp():
    return nn.Sequential(nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))


def conv_norm(inputs, filters, kernel, stride=1):
    return nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(filters)


class Block(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.inner = nn.Sequential(*conv_norm(inputs, filters, 3, stride), nn.ReLU(inplace=True), *conv_norm(filters, filters, 3))
        same = stride == 1 and inputs == filters
        self.shortcut = nn.Identity() if same else nn.Sequential(*conv_norm(inputs, filters, 1, stride))

    def forward(self, x):
        return torch.relu_(self.inner(x) + self.shortcut(x))


def resnet18():
    """As torchvision's: the same layers, strides and in-place activations."""
    layers, inputs = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, filters, stride), Block(filters, filters, 1)]
        inputs = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=step.CASES)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--channels-last", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(step.THREADS)
    torch.manual_seed(0)
    base = step.resident_peak()

    samples, shape, classes = step.CASES[arguments.case]
    model = dict(cnn=cnn, mlp=mlp, resnet18=resnet18)[arguments.case]()
    x = torch.rand(samples, *shape[-1:], *shape[:-1])
    y = torch.arange(samples) % classes
    loss_of = nn.CrossEntropyLoss()
    if classes == 2:
        y, loss_of = y.float()[:, None], nn.BCEWithLogitsLoss()
    if arguments.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def one():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    step.report(arguments.case, arguments.steps, one, base, f"PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
