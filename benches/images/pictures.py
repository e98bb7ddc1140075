"""Makes the images that are fed: seeded, each set once, in a folder that appears when it is complete."""

import contextlib
import io
import itertools
import os
import pathlib
import random
import shutil

CLASSES, PER_CLASS = 10, 400
# Where a set of photographs from scikit-image and scikit-learn stands, and what is in it.
PHOTOGRAPHS = dict(
    skimage=("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "motorcycle_right.png", "hubble_deep_field.jpg", "ihc.png"),
    sklearn=("china.jpg", "flower.jpg"),
)
LARGE_WIDTH, LARGE_HEIGHT, LARGE, PROGRESSIVE, SMALL_BESIDE = 6000, 4000, 24, 4, 100
FOLDERS, PER_FOLDER = 1000, 200


@contextlib.contextmanager
def made(folder):
    """A folder to fill, which takes its name once it is full; None where it is there already."""
    if folder.exists():
        yield None
        return
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    part.rename(folder)


def photographs():
    import numpy as np
    import skimage.data
    import sklearn.datasets
    from PIL import Image

    places = dict(skimage=pathlib.Path(skimage.data.__file__).parent, sklearn=pathlib.Path(sklearn.datasets.__file__).parent / "images")
    return [np.asarray(Image.open(places[place] / name).convert("RGB")) for place, names in PHOTOGRAPHS.items() for name in names]


def crop(photograph, width, height, generator):
    """A random part of a photograph, four to three, with other brightness and contrast and the noise of a camera."""
    import cv2
    import numpy as np

    rows, columns = photograph.shape[:2]
    wide = min(columns, rows * 4 / 3) * generator.uniform(0.6, 1.0)
    high = wide * 3 / 4
    left, top = generator.uniform(0, columns - wide), generator.uniform(0, rows - high)
    part = photograph[int(top) : int(top + high), int(left) : int(left + wide)]
    part = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA if wide > width else cv2.INTER_CUBIC).astype(np.float32)
    part = part * generator.uniform(0.85, 1.15) + generator.uniform(-10, 10)
    part += 3 * generator.standard_normal(part.shape, dtype=np.float32)
    return np.clip(part, 0, 255).astype(np.uint8)


def photos(folder):
    """4,000 JPEGs of 500×375 at quality 90, colours at half the resolution, in ten classes."""
    with made(folder) as part:
        if part:
            import numpy as np
            from PIL import Image

            generator = np.random.default_rng(0)
            for number, photograph in enumerate(photographs()):
                inside = part / f"class{number}"
                inside.mkdir()
                for image in range(PER_CLASS):
                    pixels = crop(photograph, 500, 375, generator)
                    Image.fromarray(pixels).save(inside / f"{image:04}.jpg", quality=90, subsampling=2)
    return folder


def large(folder, photos):
    """Images of 24 megapixels, baseline and progressive, among small ones."""
    with made(folder) as part:
        if part:
            import numpy as np
            from PIL import Image

            generator, found = np.random.default_rng(1), photographs()
            for number in range(CLASSES):
                inside = part / f"class{number}"
                inside.mkdir()
                for small in sorted((photos / inside.name).iterdir())[:SMALL_BESIDE]:
                    shutil.copyfile(small, inside / small.name)
            for number in range(LARGE):
                pixels = crop(found[number % CLASSES], LARGE_WIDTH, LARGE_HEIGHT, generator)
                path = part / f"class{number % CLASSES}" / f"large{number}.jpg"
                Image.fromarray(pixels).save(path, quality=90, subsampling=2, progressive=number >= LARGE - PROGRESSIVE)
    return folder


def tiny(folder):
    """200,000 files of 8×8 pixels in 1,000 folders: copies of a few, which say little but have to be listed."""
    with made(folder) as part:
        if part:
            import numpy as np
            from PIL import Image

            generator, variants = np.random.default_rng(2), []
            for _ in range(16):
                file = io.BytesIO()
                Image.fromarray(generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(file, "PNG")
                variants.append(file.getvalue())
            bytes_of = itertools.cycle(variants)
            for number in range(FOLDERS):
                inside = part / f"{number:04}"
                inside.mkdir()
                for file in range(PER_FOLDER):
                    (inside / f"image_{file:04}.png").write_bytes(next(bytes_of))
    return folder


def split(folder, source, share=0.2):
    """The photographs of class folders in `train` and `validation`: a fifth of each class judges, for all the same."""
    with made(folder) as part:
        if part:
            generator = random.Random(0)
            for inside in sorted(path for path in source.iterdir() if path.is_dir()):
                files = sorted(os.listdir(inside))
                generator.shuffle(files)
                judges = round(len(files) * share)
                for name, chosen in (("validation", files[:judges]), ("train", files[judges:])):
                    (part / name / inside.name).mkdir(parents=True)
                    for file in chosen:
                        shutil.copyfile(inside / file, part / name / inside.name / file)
    return folder
