"""The jobs of the grid, and the data that they train on: seeded, made once."""

import csv
import dataclasses

import numpy
from PIL import Image

CLASSES = 10


@dataclasses.dataclass
class Job:
    name: str
    data: str  # the name of a maker below, with its arguments
    options: list
    # Whether less memory may change more than the rounding of numbers: batch norm in smaller batches, other precision.
    exact: bool = True


def grid():
    """Every job once. Sizes are such that a plain run takes seconds, and that more than the program itself takes memory."""
    jobs = []

    def add(name, data, *options, exact=True):
        jobs.append(Job(name, data, [str(option) for option in options], exact))

    # One target must not tell the other.
    y, kind = ("--target", "y", "--ignore", "kind"), ("--target", "kind", "--ignore", "y")
    for rows in (200_000, 800_000):
        add(f"linear, {rows // 1000}k rows", f"table {rows}", "--model", "linear", "--epochs", 3, *y)
    add("linear, 8 classes", "table 400000", "--model", "linear", "--epochs", 2, *kind)
    add("linear, wide", "wide 800000", "--model", "linear", "--epochs", 2, *y)
    add("linear, wide, 8 classes", "wide 800000", "--model", "linear", "--epochs", 2, *kind)
    for rows in (800_000, 3_200_000):
        add(f"boost, {rows // 1000}k rows", f"table {rows}", "--model", "boost", "--trees", 20, *y)
    add("boost, 8 classes", "table 800000", "--model", "boost", "--trees", 4, *kind)
    add("boost, deep", "table 800000", "--model", "boost", "--trees", 10, "--depth", 9, *y)
    add("mlp over a table", "table 200000", "--model", "mlp", "--epochs", 1, "--batch", 8192, *y)
    add("mlp over a table, small batches", "table 200000", "--model", "mlp", "--epochs", 1, "--batch", 2048, *y)
    for batch in (1024, 4096, 8192):
        add(f"mlp, batch {batch}", "vectors 65536 512", *network(MLP, batch))
    add("mlp, batch 8192, sgd", "vectors 65536 512", *network(MLP, 8192), "--optimizer", "sgd", "--momentum", 0.9)
    add("mlp, batch 8192, bf16", "vectors 65536 512", *network(MLP, 8192), "--precision", "bf16")
    for batch in (256, 512):
        add(f"cnn 28×28, batch {batch}", "pictures 6144 28 1", "--model", "cnn", "--batch", batch, "--epochs", 2)
    for batch in (32, 64, 128):
        add(f"cnn 64×64, batch {batch}", "pictures 1536 64 3", "--model", "cnn", "--batch", batch, "--epochs", 2)
    for precision in ("bf16", "f16"):
        add(f"cnn 64×64, batch 128, {precision}", "pictures 1536 64 3", "--model", "cnn", "--batch", 128, "--epochs", 2, "--precision", precision)
    for batch in (16, 32):
        add(f"cnn 150×150, batch {batch}", "pictures 384 150 3", "--model", "cnn", "--batch", batch, "--epochs", 2)
    for precision in ("bf16", "f16"):
        add(f"cnn 150×150, batch 32, {precision}", "pictures 384 150 3", "--model", "cnn", "--batch", 32, "--epochs", 2, "--precision", precision)
    add("cnn 150×150, batch 32, clipped", "pictures 384 150 3", "--model", "cnn", "--batch", 32, "--epochs", 2, "--clip", 1)
    for batch in (64, 128):
        add(f"deep cnn 64×64, batch {batch}", "pictures 1536 64 3", *network(DEEP, batch))
    add("deep cnn 64×64, batch 128, bf16", "pictures 1536 64 3", *network(DEEP, 128), "--precision", "bf16")
    for batch in (32, 64):
        add(f"normed cnn 96×96, batch {batch}", "pictures 512 96 3", *network(NORMED, batch), exact=False)
    for side, batch in ((32, 128), (64, 32), (64, 64), (96, 32)):
        add(f"resnet18 {side}×{side}, batch {batch}", f"pictures 256 {side} 3", "--model", "resnet18", "--batch", batch, "--epochs", 2, exact=False)
    add("resnet18 64×64, batch 64, bf16", "pictures 256 64 3", "--model", "resnet18", "--batch", 64, "--epochs", 2, "--precision", "bf16", exact=False)
    for side, batch in ((64, 64), (96, 32), (128, 32)):
        add(f"mobilenet {side}×{side}, batch {batch}", f"pictures 256 {side} 3", "--model", "mobilenet", "--batch", batch, "--epochs", 2, exact=False)
    add("mobilenet 96×96, batch 32, bf16", "pictures 256 96 3", "--model", "mobilenet", "--batch", 32, "--epochs", 2, "--precision", "bf16", exact=False)
    for size, batch in ((64, 64), (128, 32)):
        add(f"cnn over JPEGs at {size}, batch {batch}", "photos 800", "--model", "cnn", "--image-size", size, "--batch", batch, "--epochs", 2)
    add("cnn over JPEGs at 128, no pack", "photos 800", "--model", "cnn", "--image-size", 128, "--batch", 32, "--epochs", 1, "--no-pack")
    return jobs


def knobs():
    """Jobs, and what is changed of each, one thing at a time."""
    common = [
        ["--recompute", "cheap"], ["--recompute", "most"], ["--precision", "bf16"], ["--precision", "f16"],
        ["--moments", "bf16"], ["--moments", "8bit"], ["--threads", "1"],
    ]
    sizes = lambda *batches: [["--micro-batch", str(batch)] for batch in batches]
    yield Job("deep cnn 64×64, batch 128", "pictures 1536 64 3", [str(word) for word in network(DEEP, 128)]), sizes(64, 32, 16) + common
    yield Job("resnet18 64×64, batch 64", "pictures 256 64 3", ["--model", "resnet18", "--batch", "64", "--epochs", "2"]), sizes(32, 16) + common + [["--freeze", "conv1,bn1"]]
    yield Job("mlp, batch 8192", "vectors 65536 512", [str(word) for word in network(MLP, 8192)]), sizes(4096, 1024) + common + [["--keep", "f16"]]


MLP = '["flatten", { dense = 512, activation = "relu" }, { dense = 512, activation = "relu" }, { dense = 256, activation = "relu" }, { dense = "classes" }]'
DEEP = (
    '[{ conv = 16, padding = "same", activation = "relu" }, { conv = 16, padding = "same", activation = "relu" }, { max_pool = 2 }, '
    '{ conv = 32, padding = "same", activation = "relu" }, { conv = 32, padding = "same", activation = "relu" }, { max_pool = 2 }, '
    '{ conv = 64, padding = "same", activation = "relu" }, { conv = 64, padding = "same", activation = "relu" }, "global_average_pool", { dense = "classes" }]'
)
NORMED = (
    '[{ conv = 32, padding = "same", bias = false }, { norm = "batch", activation = "relu" }, { conv = 32, padding = "same", bias = false }, '
    '{ norm = "batch", activation = "relu" }, { max_pool = 2 }, { conv = 64, padding = "same", bias = false }, { norm = "batch", activation = "relu" }, '
    '"global_average_pool", { dense = "classes" }]'
)


def network(layers, batch):
    """Layers of one's own are said in a job file; the rest as options."""
    return ["layers", layers, "--batch", batch, "--epochs", 2]


def make(folder, data):
    """The file or folder of a job's data, and the options that name it."""
    kind, *numbers = data.split()
    numbers = [int(number) for number in numbers]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "-".join([kind, *map(str, numbers)])
    return MAKERS[kind](path, *numbers)


def table(path, rows):
    """Numbers, categories and a text that tell a target of two values, and one of eight."""
    path = path.with_suffix(".csv")
    if not path.exists():
        draw = numpy.random.default_rng(7)
        numbers = draw.normal(size=(rows, 10)).round(4)
        city = draw.zipf(1.3, rows) % 3000
        brand = draw.integers(0, 40, rows)
        score = numbers[:, 0] - 0.5 * numbers[:, 1] + (city % 7) / 4 + (brand % 5) / 3 + draw.logistic(size=rows)
        kind = numpy.digitize(score, numpy.quantile(score, numpy.arange(1, 8) / 8))
        with open(part := path.with_suffix(".part"), "w", newline="") as file:
            write = csv.writer(file)
            write.writerow([*(f"n{i}" for i in range(10)), "city", "brand", "y", "kind"])
            for i in range(rows):
                write.writerow([*numbers[i], f"c{city[i]}", f"b{brand[i]}", int(score[i] > 1.5), f"k{kind[i]}"])
        part.rename(path)
    return path, []


def wide(path, rows):
    """Columns of many categories, which a linear model hashes."""
    path = path.with_suffix(".csv")
    if not path.exists():
        draw = numpy.random.default_rng(8)
        columns = [draw.zipf(1.2, rows) % 200_000 for _ in range(6)]
        score = sum(column % 3 for column in columns) + draw.normal(size=rows)
        y = (score > 6).astype(int)
        kind = numpy.digitize(score, numpy.quantile(score, numpy.arange(1, 8) / 8))
        with open(part := path.with_suffix(".part"), "w", newline="") as file:
            write = csv.writer(file)
            write.writerow([*(f"c{i}" for i in range(6)), "y", "kind"])
            for i in range(rows):
                write.writerow([*(f"v{column[i]}" for column in columns), y[i], f"k{kind[i]}"])
        part.rename(path)
    return path, []


def arrays(path, samples, labels):
    path.mkdir(exist_ok=True)
    numpy.save(path / "x.npy", samples)
    numpy.save(path / "y.npy", labels)


def vectors(path, n, width):
    if not (path / "y.npy").exists():
        draw = numpy.random.default_rng(9)
        labels = draw.integers(0, CLASSES, n)
        centres = draw.normal(size=(CLASSES, width))
        arrays(path, (centres[labels] * 0.2 + draw.normal(size=(n, width))).astype("float32"), labels)
    return path / "x.npy", ["--target", path / "y.npy"]


def pictures(path, n, side, channels):
    if not (path / "y.npy").exists():
        draw = numpy.random.default_rng(10)
        labels = draw.integers(0, CLASSES, n)
        grid = numpy.linspace(0, 1, side)
        waves = numpy.sin(numpy.outer(numpy.arange(1, CLASSES + 1) * 3, grid))
        images = 128 + 60 * waves[labels][:, :, None, None] * numpy.ones((1, 1, side, channels))
        images = images + draw.normal(scale=40, size=images.shape)
        arrays(path, images.clip(0, 255).astype("uint8"), labels)
    return path / "x.npy", ["--target", path / "y.npy"]


def photos(path, n):
    """JPEGs of several sizes in class folders."""
    if not (path / "done").exists():
        draw = numpy.random.default_rng(11)
        for i in range(n):
            label = int(draw.integers(0, CLASSES))
            height, width = (int(draw.integers(150, 600)) for _ in range(2))
            small = draw.integers(0, 255, (8, 8, 3)) // 2 + 12 * label
            image = Image.fromarray(small.astype("uint8")).resize((width, height), Image.BICUBIC)
            (path / "images" / f"class{label}").mkdir(parents=True, exist_ok=True)
            image.save(path / "images" / f"class{label}" / f"{i}.jpg", quality=90)
        (path / "done").touch()
    return path / "images", []


MAKERS = dict(table=table, wide=wide, vectors=vectors, pictures=pictures, photos=photos)
