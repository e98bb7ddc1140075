"""Kills a small training at random moments and takes it up again; see `killed`."""

import array
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

tidegate, kills = sys.argv[1], int(sys.argv[2])
EPOCHS, SAMPLES, SIDE = 8, 1500, 16
draw = random.Random(7)


def npy(path, kind, shape, data):
    """A .npy file of version 1."""
    header = repr(dict(descr=kind, fortran_order=False, shape=shape))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def bars(folder):
    """Grey images with a bright bar at one of three places, and noise."""
    pixels, labels = bytearray(), array.array("q")
    for _ in range(SAMPLES):
        label = draw.randrange(3)
        labels.append(label)
        for row in range(SIDE):
            bright = 60 if row * 3 // SIDE == label else 0
            pixels += bytes(bright + draw.randrange(150) for _ in range(SIDE))
    npy(folder / "x.npy", "|u1", (SAMPLES, SIDE, SIDE), bytes(pixels))
    npy(folder / "y.npy", "<i8", (SAMPLES,), labels.tobytes())


def main():
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        bars(folder)
        environment = os.environ | dict(TIDEGATE_HOME=str(folder / "home"))
        train = [tidegate, "train", str(folder / "x.npy"), "--epochs", str(EPOCHS), "--batch", "32", "--memory", "200MB", "--json"]
        resume = [tidegate, "resume", "last", "--json"]

        def start(command):
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def weights(out):
            return (folder / "home/runs" / json.loads(out)["run"]["id"] / "model/weights.safetensors").read_bytes()

        started = time.monotonic()
        expected = weights(start(train).communicate()[0])
        whole = time.monotonic() - started
        killed = ends = wrong = again = 0
        command = train
        while killed < kills or command is resume:
            process = start(command)
            try:
                out, _ = process.communicate(timeout=draw.uniform(0, whole) if killed < kills else None)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                killed, command = killed + 1, resume
                continue
            if process.returncode == 0:
                ends, wrong, command = ends + 1, wrong + (weights(out) != expected), train
            else:
                # Killed before its first checkpoint: there is nothing to take up.
                again, command = again + 1, train
        print(f"{killed} kills, {ends} trainings that ended, {wrong} of them at other weights; {again} had no checkpoint yet and began anew")
        sys.exit(1 if wrong or not ends else 0)


main()
