"""Trains the small CNN in Keras by image_dataset_from_directory and fit; prints one JSON line.

train_keras.py IMAGES [--validation FOLDER] [--size SIDE] [--epochs N] [--seed N] [--cache]
"""

import os

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")

import contextlib
import sys

import keras
import tensorflow as tf
from keras import layers as L

import training


def images(folder, arguments, **options):
    # The report alone goes to the standard output.
    with contextlib.redirect_stdout(sys.stderr):
        return keras.utils.image_dataset_from_directory(folder, image_size=(arguments.size, arguments.size), batch_size=training.BATCH, **options)


def network(side, classes):
    layers = [keras.Input((side, side, 3))]
    for filters in training.FILTERS:
        layers += [L.Conv2D(filters, 3, padding="same", activation="relu"), L.MaxPooling2D()]
    return keras.Sequential([*layers, L.Flatten(), L.Dropout(training.DROPOUT), L.Dense(training.UNITS, activation="relu"), L.Dense(classes)])


class Told(keras.callbacks.Callback):
    def __init__(self, watch, judges):
        super().__init__()
        self.watch, self.judges = watch, judges

    def on_epoch_begin(self, epoch, logs=None):
        self.watch.start()

    def on_epoch_end(self, epoch, logs=None):
        self.watch.end()
        if self.judges is not None:
            self.watch.judge(lambda: self.model.evaluate(self.judges, verbose=0)[1])


def main():
    arguments = training.arguments()
    keras.utils.set_random_seed(arguments.seed)
    watch = training.Watch()
    # Where quality counts, all shrink images with antialiasing; where time counts, Keras does it its own way.
    method = dict(interpolation="area") if arguments.validation else {}
    samples = images(arguments.images, arguments, seed=arguments.seed, **method)
    classes = len(samples.class_names)
    if arguments.cache:
        samples = samples.cache()
    flip = L.RandomFlip("horizontal", seed=arguments.seed)
    changed = lambda pixels, label: (flip(pixels / 255, training=True), label)
    samples = samples.map(changed, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    judges = None
    if arguments.validation:
        judges = images(arguments.validation, arguments, shuffle=False, **method).map(lambda pixels, label: (pixels / 255, label)).cache()
    model = network(arguments.size, classes)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Keras may choose XLA by itself; on two cores that was slower.
    model.compile(keras.optimizers.Adam(training.RATE), loss, metrics=["accuracy"], jit_compile=False)
    model.fit(samples, epochs=arguments.epochs, verbose=0, callbacks=[Told(watch, judges)])
    watch.report(f"Keras {keras.__version__} on TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
