"""Steps of one network in Keras on TensorFlow; prints one JSON line.

step_keras.py CASE --steps N [--function]

`train_on_batch` is what Keras offers; with --function it is a compiled step of one's own, as TensorFlow's guides write.
"""

import argparse
import os

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")

import keras
import tensorflow as tf
from keras import layers as L

import step


def cnn(x):
    for filters in (32, 64):
        x = L.MaxPooling2D()(L.Conv2D(filters, 3, activation="relu")(x))
    return L.Dense(10)(L.Dense(128, activation="relu")(L.Flatten()(x)))


def mlp(x):
    return L.Dense(1)(L.Dense(128, activation="relu")(L.Dense(256, activation="relu")(x)))


def conv_norm(x, filters, kernel, stride=1):
    return L.BatchNormalization()(L.Conv2D(filters, kernel, stride, padding="same", use_bias=False)(x))


def block(x, filters, stride):
    same = stride == 1 and x.shape[-1] == filters
    shortcut = x if same else conv_norm(x, filters, 1, stride)
    inner = conv_norm(L.ReLU()(conv_norm(x, filters, 3, stride)), filters, 3)
    return L.ReLU()(L.Add()([inner, shortcut]))


def resnet18(x):
    x = L.MaxPooling2D(3, 2, padding="same")(L.ReLU()(conv_norm(x, 64, 7, 2)))
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = block(block(x, filters, stride), filters, 1)
    return L.Dense(10)(L.GlobalAveragePooling2D()(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=step.CASES)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--function", action="store_true")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(step.THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(step.THREADS)
    keras.utils.set_random_seed(0)
    base = step.resident_peak()

    samples, shape, classes = step.CASES[arguments.case]
    inputs = keras.Input(shape)
    model = keras.Model(inputs, dict(cnn=cnn, mlp=mlp, resnet18=resnet18)[arguments.case](inputs))
    x = tf.random.uniform([samples, *shape])
    y = tf.range(samples) % classes
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if classes == 2:
        y, loss_of = tf.cast(y, tf.float32)[:, None], keras.losses.BinaryCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(1e-3)
    # Keras may choose XLA by itself. On two cores that was slower: 505 ms instead of 232 for cnn, 3.9 instead of 3.3 for mlp.
    model.compile(optimizer=optimizer, loss=loss_of, jit_compile=False)

    @tf.function
    def function():
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    one = function if arguments.function else lambda: model.train_on_batch(x, y)
    version = f"Keras {keras.__version__} on TensorFlow {tf.__version__}"
    step.report(arguments.case, arguments.steps, lambda: float(one()), base, version)


if __name__ == "__main__":
    main()
