"""Feeds images by tf.data or by Keras's ImageDataGenerator; prints one JSON line.

feed_tensorflow.py IMAGES --variant data|data-half|data-plain|generator [--augment]

`data-half` decodes at half the size, and `data-plain` resizes without antialiasing: less work than is asked for.
"""

import collections
import concurrent.futures
import os

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")

import feed


def data(arguments):
    import keras
    import tensorflow as tf

    half, plain = arguments.variant == "data-half", arguments.variant == "data-plain"

    def picture(path):
        pixels = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=2 if half else 1)
        pixels = tf.image.resize(pixels, (feed.SIZE, feed.SIZE), antialias=not plain) * (1 / 255)
        return tf.image.random_flip_left_right(pixels)

    layers = []
    if arguments.augment:
        # Shares of a full turn and of a straight angle.
        layers.append(keras.layers.RandomRotation(feed.ROTATION / 360, fill_mode="nearest"))
        layers.append(keras.layers.RandomZoom(feed.ZOOM, feed.ZOOM, fill_mode="nearest"))
        layers.append(keras.layers.RandomShear(feed.SHEAR / 180, feed.SHEAR / 180, fill_mode="nearest"))

    def augmented(batch):
        for layer in layers:
            batch = layer(batch, training=True)
        return batch

    files = tf.data.Dataset.list_files(str(arguments.images / "*/*.jpg"), shuffle=True)
    batches = files.map(picture, num_parallel_calls=tf.data.AUTOTUNE).batch(feed.BATCH)
    if layers:
        batches = batches.map(augmented, num_parallel_calls=tf.data.AUTOTUNE)
    batches = batches.prefetch(tf.data.AUTOTUNE)
    feed.report(arguments.epochs, lambda: batches, f"TensorFlow {tf.__version__}")


def generator(arguments):
    import keras
    from keras._tf_keras.keras.preprocessing.image import ImageDataGenerator

    changes = dict(rotation_range=feed.ROTATION, zoom_range=feed.ZOOM, shear_range=feed.SHEAR) if arguments.augment else {}
    images = ImageDataGenerator(rescale=1 / 255, horizontal_flip=True, **changes)
    flow = images.flow_from_directory(str(arguments.images), target_size=(feed.SIZE, feed.SIZE), batch_size=feed.BATCH, interpolation="bilinear")

    def batches():
        """On two threads and ten batches ahead, as `fit` does with two workers."""
        with concurrent.futures.ThreadPoolExecutor(feed.WORKERS) as workers:
            ahead = collections.deque()
            for number in range(len(flow)):
                ahead.append(workers.submit(flow.__getitem__, number))
                if len(ahead) > 10:
                    yield ahead.popleft().result()[0]
            while ahead:
                yield ahead.popleft().result()[0]
        flow.on_epoch_end()

    feed.report(arguments.epochs, batches, f"Keras {keras.__version__}")


def main():
    arguments = feed.arguments("data", "data-half", "data-plain", "generator")
    generator(arguments) if arguments.variant == "generator" else data(arguments)


if __name__ == "__main__":
    main()
