"""What is measured, part by part. Each part prints its table and its bars, and returns its results."""

import shutil
import statistics

import pictures
from contest import best, fed, good, head, last_line, line, median, megabytes, note, others
from feed import BATCH, ROTATION, SHEAR, SIZE, WORKERS, ZOOM

OURS, TURBO = "Tidegate", "libjpeg-turbo"
TENSORFLOW, TORCH, DALI = ("tensorflow-cpu", "keras"), ("torch", "opencv-python-headless"), ("nvidia-dali-cuda120",)
# What feeds: its packages and its command. Some do less than is asked for, and so are faster; the bars count them too.
PEERS = {
    "tf.data": (TENSORFLOW, ["feed_tensorflow.py", "--variant", "data"]),
    "tf.data, half-size decode": (TENSORFLOW, ["feed_tensorflow.py", "--variant", "data-half"]),
    "tf.data, not antialiased": (TENSORFLOW, ["feed_tensorflow.py", "--variant", "data-plain"]),
    "PyTorch, OpenCV": (TORCH, ["feed_torch.py", "--variant", "area"]),
    "PyTorch, OpenCV, half-size decode": (TORCH, ["feed_torch.py", "--variant", "half"]),
    "PyTorch, OpenCV, not antialiased": (TORCH, ["feed_torch.py", "--variant", "plain"]),
    "DALI on CPU": (DALI, ["feed_dali.py"]),
    "Keras ImageDataGenerator": (TENSORFLOW, ["feed_tensorflow.py", "--variant", "generator"]),
}
# Every how many seconds the memory is looked at: where speed does not count, and where it does.
OFTEN, SELDOM = 0.05, 1.0
# Megabytes for the pipeline alone, and the budget that the kernel enforces.
FEED_MEMORY, BUDGET = 64, 128
# Enough for the pack to be kept in memory.
PACK_MEMORY = 512
TRAIN_MEMORY = "1GB"
KEPT = ["env", "MALLOC_MMAP_THRESHOLD_=8000000000", "MALLOC_TRIM_THRESHOLD_=8000000000"]
TRAIN_EPOCHS, TRAIN_ROUNDS = 3, 2
TRASHNET_SIZE, TRASHNET_EPOCHS, SEEDS = 128, 15, 3
# "Seconds" for 200,000 files.
OPENED_WITHIN = 10


# The pipeline alone.


def photos_of(bench):
    """The photographs, read once: a file that is not in the page cache would stay out of it with us, but not with others."""
    photos = pictures.photos(bench.work / "photos")
    for file in photos.glob("*/*.jpg"):
        file.read_bytes()
    return photos


def our_feed(bench, photos, epochs, *options, memory=FEED_MEMORY):
    usual = ["--size", SIZE, "--batch", BATCH, "--threads", WORKERS, "--memory", memory, "--epochs", epochs]
    return bench.image_feed(photos, *usual, *options)


def peer_feed(bench, name, photos, epochs, *options):
    packages, (script, *variant) = PEERS[name]
    return bench.uninstalled(packages) or bench.peer(script, photos, *variant, "--epochs", epochs, *options)


def feeds(bench, title, commands):
    """Rounds of commands that feed, their memory in a run apart, and the table; `commands` make one for so many epochs."""
    read = {name: fed if name.startswith(OURS) else last_line for name in commands}
    contestants = {name: lambda name=name: bench.measured(commands[name](bench.arguments.epochs), read[name]) for name in commands}
    results = bench.rounds(contestants, bench.arguments.rounds, lambda run: f"{max(run['rates']):.0f} images/s")
    peaks = {}
    for name, runs in results.items():
        looked = bench.measured(commands[name](2), read[name], look=OFTEN) if good(runs) else {}
        peaks[name] = looked.get("proportional")
        note(f"memory, {name}: {looked.get('failed') or megabytes(peaks[name])}")
    columns = ("images/s, best", "median", "ours is, by the best", "by the median", "peak memory", "others on the cores", "version")
    head(f"{title}: {bench.arguments.rounds} rounds of {bench.arguments.epochs} epochs, {WORKERS} threads or workers", "", *columns)
    ours = results[OURS]
    for name, runs in results.items():
        if not good(runs):
            line(name, runs[0]["failed"], *["-"] * (len(columns) - 1))
            continue
        ratios = [f"{of(ours) / of(runs):.2f} times" if good(ours) else "-" for of in (best, median)]
        line(name, f"{best(runs):.0f}", f"{median(runs):.0f}", *ratios, megabytes(peaks[name]), others(runs), runs[0].get("version", "-"))
    print()
    return results, peaks


def ratio(results, name, peer):
    return median(results[name]) / median(results[peer]) if good(results[name]) and good(results[peer]) else None


def beside_fastest(bench, what, results, wanted):
    """The bar beside the fastest of the peers."""
    there = [name for name in PEERS if name in results and good(results[name])]
    fastest = max(there, key=lambda name: median(results[name]), default=None)
    value = fastest and ratio(results, OURS, fastest)
    bench.bar(f"{what}, beside the fastest ({fastest})", value and f"{value:.2f} times", f"{wanted} times", value and value >= wanted)


def pipeline(bench):
    photos = photos_of(bench)
    commands = {OURS: lambda epochs: our_feed(bench, photos, epochs)}
    commands |= {name: lambda epochs, name=name: peer_feed(bench, name, photos, epochs) for name in PEERS}
    commands[TURBO] = lambda epochs: bench.turbo(photos, epochs)
    results, peaks = feeds(bench, "Pipeline alone", commands)
    beside_fastest(bench, "pipeline", results, 1.5)
    if not good(results[TURBO]):
        print(f"- {TURBO}: {results[TURBO][0]['failed']}")
    value = ratio(results, OURS, TURBO)
    bench.bar("pipeline, beside bare libjpeg-turbo", value and f"{value:.2f} times", "0.85 times", value and value >= 0.85)
    smallest = min((name for name in PEERS if peaks[name]), key=peaks.get, default=None)
    share = peaks[OURS] / peaks[smallest] if smallest and peaks[OURS] else None
    bench.bar(f"pipeline, memory beside the smallest peer's ({smallest})", share and f"{share:.2f} of it", "below 0.25", share and share < 0.25)
    return dict(runs=results, peaks=peaks)


def augment(bench):
    photos = photos_of(bench)
    changes = f"flip,rotation={ROTATION},zoom={ZOOM},shear={SHEAR}"
    commands = {OURS: lambda epochs: our_feed(bench, photos, epochs, "--augment", changes)}
    commands |= {name: lambda epochs, name=name: peer_feed(bench, name, photos, epochs, "--augment") for name in PEERS}
    results, peaks = feeds(bench, "With rotation, zoom and shear", commands)
    beside_fastest(bench, "augmented", results, 1.5)
    return dict(runs=results, peaks=peaks)


def pack(bench):
    """Ours from its pack, whose epochs take a tenth of a second, beside tf.data from the files."""
    photos, packs = photos_of(bench), bench.work / "packs"
    shutil.rmtree(packs, ignore_errors=True)
    packing = bench.measured(our_feed(bench, photos, 1, "--pack", packs), fed)
    from_pack = lambda epochs, memory: our_feed(bench, photos, 10 * epochs, "--pack", packs, memory=memory)
    commands = {
        OURS: lambda epochs: from_pack(epochs, PACK_MEMORY),
        f"{OURS}, the pack on disk": lambda epochs: from_pack(epochs, FEED_MEMORY),
    }
    from_files = [name for name in PEERS if name.startswith("tf.data")]
    commands |= {name: lambda epochs, name=name: peer_feed(bench, name, photos, epochs) for name in from_files}
    results, peaks = feeds(bench, "From the pack, kept in memory", commands)
    if "failed" not in packing:
        print(f"- the pack was written at {packing['packing']:.0f} images/s")
    beside_fastest(bench, "from the pack", results, 20)
    return dict(runs=results, peaks=peaks, packing=packing)


# Budgets that the kernel enforces.


def within(bench, folder, title, feed_options, train_options):
    """image_feed and a training, each in 128 MB; their results and whether both stayed within."""
    head(f"{title}, in {BUDGET} MB", "", "seconds", "opened in", "images", "kernel's peak", "others on the cores")
    feeding = bench.measured(bench.image_feed(folder, "--epochs", 1, "--memory", BUDGET * 3 // 4, *feed_options), fed, limit=BUDGET * 1_000_000)
    home = bench.work / "home"
    shutil.rmtree(home, ignore_errors=True)
    training = bench.train(folder, home, "--memory", f"{BUDGET}MB", "--epochs", 1, "--no-pack", *train_options)
    if "failed" not in training:
        training["images"], training["group"] = training["report"]["rows"]["used"], training["run"]["peak_bytes"]
    runs = {"image_feed": feeding, "tidegate train": training}
    for name, run in runs.items():
        if "failed" in run:
            line(name, run["failed"], *["-"] * 4)
            continue
        opened = f"{run['opened']:.2f} s" if "opened" in run else "-"
        line(name, f"{run['seconds']:.1f}", opened, f"{run['images']:,}", megabytes(run["group"]), others([run]))
    print()
    for name, run in runs.items():
        peak, failed = run.get("group"), run.get("failed", "")
        value = megabytes(peak) if peak else None if failed.startswith("unavailable") else failed
        bench.bar(f"{title}, kernel's peak of {name}", value, f"at most {BUDGET} MB", peak and peak <= BUDGET * 1_000_000)
    return runs


def memory(bench):
    folder = pictures.large(bench.work / "large", photos_of(bench))
    title = f"{pictures.LARGE} images of 24 megapixels among {pictures.SMALL_BESIDE * pictures.CLASSES:,}"
    feeding = ["--size", SIZE, "--batch", BATCH, "--threads", WORKERS]
    return within(bench, folder, title, feeding, ["--image-size", SIZE, "--model", "cnn", "--batch", 4, "--augment", "flip"])


def files(bench):
    folder = pictures.tiny(bench.work / "tiny")
    title = f"{pictures.FOLDERS * pictures.PER_FOLDER:,} tiny files in {pictures.FOLDERS:,} folders"
    runs = within(bench, folder, title, ["--size", 8, "--batch", 256], ["--image-size", 8, "--model", "mlp", "--batch", 256])
    opened = runs["image_feed"].get("opened")
    bench.bar(f"{title}, opening", opened and f"{opened:.1f} s", f"at most {OPENED_WITHIN} s", opened and opened <= OPENED_WITHIN)
    return runs


# Trainings.


def ours_end_to_end(bench, photos):
    home = bench.work / "home"
    shutil.rmtree(home, ignore_errors=True)
    options = ["--image-size", SIZE, "--model", "cnn", "--augment", "flip", "--epochs", TRAIN_EPOCHS, "--batch", BATCH]
    run = bench.train(photos, home, *options, "--holdout", 0, "--memory", TRAIN_MEMORY, look=SELDOM)
    if "failed" not in run:
        # All of the command: with listing the files and packing them.
        run |= dict(epochs=[epoch["seconds"] for epoch in run["fed"]], whole=run["seconds"])
    return run


def train(bench):
    photos = photos_of(bench)
    torch = lambda *options: bench.uninstalled(TORCH) or bench.peer("train_torch.py", photos, *options)
    keras = lambda *options: bench.uninstalled(TENSORFLOW) or bench.peer("train_keras.py", photos, *options)
    # As in benches/network: the layout that PyTorch recommends, and glibc told not to give large blocks back.
    kept = lambda command: command if isinstance(command, str) else [*KEPT, *command]
    commands = {
        "Keras": lambda: keras(),
        "Keras, images cached in memory": lambda: keras("--cache"),
        "PyTorch": lambda: torch(),
        "PyTorch, channels_last, pages kept": lambda: kept(torch("--channels-last")),
    }
    contestants = {OURS: lambda: ours_end_to_end(bench, photos)}
    contestants |= {name: lambda name=name: bench.measured(commands[name](), last_line, look=SELDOM) for name in commands}
    results = bench.rounds(contestants, min(bench.arguments.rounds, TRAIN_ROUNDS), lambda run: f"{run['whole']:.1f} s")
    columns = ("seconds in all", "per epoch of all", "per epoch from the second on", "stall from the second on", "peak memory", "others on the cores", "version")
    head(f"The small CNN from {pictures.CLASSES * pictures.PER_CLASS:,} files, {TRAIN_EPOCHS} epochs", "", *columns)
    whole = lambda runs: min(run["whole"] for run in runs) / TRAIN_EPOCHS
    later = lambda runs: statistics.median(seconds for run in runs for seconds in run["epochs"][1:])
    stall = lambda runs: max((epoch["stall"] for run in runs for epoch in run["fed"][1:]), default=None)
    for name, runs in results.items():
        if not good(runs):
            line(name, runs[0]["failed"], *["-"] * (len(columns) - 1))
            continue
        stalled = f"{stall(runs):.1%}" if name == OURS and stall(runs) is not None else "-"
        peak = megabytes(max(run["proportional"] for run in runs))
        line(name, f"{whole(runs) * TRAIN_EPOCHS:.1f}", f"{whole(runs):.1f}", f"{later(runs):.1f}", stalled, peak, others(runs), runs[0].get("version", "-"))
    print()
    ours = results[OURS]
    value = stall(ours) if good(ours) else None
    bench.bar("training, stall from the second epoch on", value is not None and f"{value:.1%}" or None, "below 5%", value is not None and value < 0.05)
    for kind in ("Keras", "PyTorch"):
        # Keras's cache holds all images in memory, a gigabyte of them: told, not counted.
        there = [name for name in results if name.startswith(kind) and "cached" not in name and good(results[name])]
        fastest = min(there, key=lambda name: whole(results[name]), default=None)
        value = whole(results[fastest]) / whole(ours) if fastest and good(ours) else None
        bench.bar(f"training, wall time per epoch beside {fastest or kind}", value and f"{value:.2f} times as fast", "above 1", value and value > 1)
    return results


def trashnet(bench):
    source = bench.arguments.data or bench.root.parent / "shared/data/trashnet_sample"
    if not source.exists():
        bench.bar("trashnet", None, "the photographs", False)
        return {}
    folder = pictures.split(bench.work / "trashnet", source)
    home = bench.work / "home"
    shutil.rmtree(home, ignore_errors=True)
    schedule = ["--epochs", TRASHNET_EPOCHS]
    peer = ["--validation", folder / "validation", "--size", TRASHNET_SIZE, *schedule]
    keras = lambda seed: bench.uninstalled(TENSORFLOW) or bench.peer("train_keras.py", folder / "train", *peer, "--seed", seed)
    torch = lambda seed: bench.uninstalled(TORCH) or bench.peer("train_torch.py", folder / "train", *peer, "--seed", seed)
    ours = ["--image-size", TRASHNET_SIZE, "--model", "cnn", "--augment", "flip", "--batch", BATCH, "--learning-rate", 0.001, "--memory", TRAIN_MEMORY, *schedule]
    contests = {
        OURS: lambda seed: bench.train(folder, home, *ours, "--seed", seed),
        "Keras": lambda seed: bench.measured(keras(seed), last_line),
        "PyTorch": lambda seed: bench.measured(torch(seed), last_line),
    }
    results = {name: [] for name in contests}
    for seed in range(SEEDS):
        for name, contest in contests.items():
            run = contest(seed)
            results[name].append(run)
            note(f"seed {seed}, {name}: {run.get('failed') or run['accuracies'][-1]}")
    head(f"trashnet_sample from scratch at {TRASHNET_SIZE}×{TRASHNET_SIZE}, {TRASHNET_EPOCHS} epochs", "", "accuracy by seed", "mean", "deviation", "mean of the last five epochs", "seconds in all")
    figures = {}
    for name, runs in results.items():
        failed = next((run["failed"] for run in runs if "failed" in run), None)
        if failed:
            line(name, failed, *["-"] * 4)
            continue
        accuracies = [run["accuracies"][-1] for run in runs]
        figures[name] = statistics.mean(accuracies), statistics.stdev(accuracies)
        seconds = sum(run["seconds"] for run in runs)
        late = statistics.mean(accuracy for run in runs for accuracy in run["accuracies"][-5:])
        line(name, " ".join(f"{accuracy:.3f}" for accuracy in accuracies), *(f"{figure:.3f}" for figure in (*figures[name], late)), f"{seconds:.0f}")
    print()
    for name in ("Keras", "PyTorch"):
        value, wanted = None, None
        if OURS in figures and name in figures:
            value, (mean, deviation) = figures[OURS][0], figures[name]
            wanted = mean - (deviation**2 / 2 + figures[OURS][1] ** 2 / 2) ** 0.5
        bench.bar(f"trashnet, accuracy beside {name}", value and f"{value:.3f}", f"at least {wanted:.3f}" if wanted else "-", value and value >= wanted)
    return results


PARTS = dict(pipeline=pipeline, augment=augment, pack=pack, memory=memory, train=train, trashnet=trashnet, files=files)
