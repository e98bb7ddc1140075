"""Prints what PyTorch makes of small networks: outputs, losses, gradients and the weights after three steps.

    python pytorch.py > pytorch.json

Layers are given as Tidegate reads them, and activations are channels-last throughout: what PyTorch wants otherwise is
turned around its own functions (`channels_first`). Weights keep PyTorch's layouts (convolutions OIHW or OIW, dense
layers [out, in]) and are named by the path of their layer: `0.weight`, `3.residual.1.bias`, `3.shortcut.0.weight`.

Inputs and weights are single precision with three decimals; the computing is in double precision, so that what a test
finds beside these values is its own error. All is printed with the digits that single precision needs, nine at most.

A case of the JSON, one to a line:

- `name`, `input` (the shape of a sample), `batch`, `layers`, `loss` and where there is one `optimizer`;
- `x` and `target`: flattened; classes and token ids as integers;
- `weights`: {name: {shape, values}}, the starting values, with `running_mean` and `running_var` of batch norms;
- `output`: raw, before the loss; `loss_value`: the mean, as PyTorch takes it (by the sum of class weights where given);
- `gradients`: {name: values}, of one batch, not clipped, none for frozen layers; `x_gradient`: none for token ids
  and the columns of tables;
- `running`: batch norm's statistics after that batch, and `prediction`: the output in evaluation mode with these;
- `steps`: {name: values}, all weights and statistics after three optimizer steps on the same batch.
"""
import copy
import json
import math

import numpy as np
import torch
import torch.nn.functional as F

ACTIVATIONS = {
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "elu": F.elu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "hard_swish": F.hardswish,
    "relu6": F.relu6,
}


class Network:
    """Layers and their weights, which are drawn when a layer first asks for them."""

    def __init__(self, layers, draw):
        self.layers, self.draw, self.training = layers, draw, True
        self.weights, self.statistics = {}, {}

    def __call__(self, x):
        return self.run(self.layers, x, "")

    def run(self, layers, x, path):
        for place, layer in enumerate(layers):
            layer = {layer: None} if isinstance(layer, str) else layer
            kind = next(kind for kind in LAYERS if kind in layer)
            x = LAYERS[kind](Scope(self, layer, f"{path}{place}."), x)
            if kind != "activation" and "activation" in layer:
                x = ACTIVATIONS[layer["activation"]](x)
        return x

    def named(self):
        return self.weights | self.statistics


class Scope:
    """A layer in its network: its settings and its weights."""

    def __init__(self, network, layer, path):
        self.network, self.layer, self.path = network, layer, path

    def get(self, key, default=None):
        return self.layer.get(key, default)

    def each(self, key, axes, default=1):
        """A setting for each axis, where one number stands for all."""
        value = self.layer.get(key, default)
        return list(value) if isinstance(value, list) else [value] * axes

    def weight(self, name, shape, around=0.0, spread=0.3):
        weights, name = self.network.weights, self.path + name
        if name not in weights:
            values = around + spread * self.network.draw(shape)
            weights[name] = decimals(values).requires_grad_(not self.get("frozen", False))
        return weights[name]

    def kernel(self, *shape):
        return self.weight("weight", shape, spread=1 / math.sqrt(math.prod(shape[1:])))

    def bias(self, size):
        return self.weight("bias", [size]) if self.get("bias", True) else None

    def statistic(self, name, size, around, spread):
        statistics, name = self.network.statistics, self.path + name
        if name not in statistics:
            statistics[name] = decimals(around + spread * self.network.draw([size]).clamp(-2, 2))
        return statistics[name]


def channels_first(function, x):
    return function(x.movedim(-1, 1)).movedim(1, -1)


def dense(scope, x):
    return F.linear(x, scope.kernel(scope.get("dense"), x.shape[-1]), scope.bias(scope.get("dense")))


def conv(scope, x):
    return convolve(scope, x, scope.get("conv"), scope.get("groups", 1), "kernel")


def depthwise(scope, x):
    channels = x.shape[-1]
    return convolve(scope, x, channels * scope.get("multiplier", 1), channels, "depthwise")


def convolve(scope, x, filters, groups, kernel):
    axes = x.dim() - 2
    kernel, stride, dilation = scope.each(kernel, axes), scope.each("stride", axes), scope.each("dilation", axes)
    padding, around = scope.get("padding", "valid"), []
    for axis in range(axes):
        if padding == "same":
            size, reach = x.shape[1 + axis], dilation[axis] * (kernel[axis] - 1) + 1
            total = max((-(-size // stride[axis]) - 1) * stride[axis] + reach - size, 0)
            around.append([total // 2, total - total // 2])
        else:
            around.append([0 if padding == "valid" else scope.each("padding", axes)[axis]] * 2)
    # F.pad begins with the last axis, and channels-last that is the channels.
    x = F.pad(x, [0, 0] + sum(reversed(around), []))
    weight = scope.kernel(filters, x.shape[-1] // groups, *kernel)
    function = {1: F.conv1d, 2: F.conv2d}[axes]
    return channels_first(lambda x: function(x, weight, scope.bias(filters), stride, 0, dilation, groups), x)


def pool(kind, functions, **more):
    def layer(scope, x):
        axes = x.dim() - 2
        kernel, padding = scope.each(kind, axes), scope.each("padding", axes, 0)
        stride = scope.each("stride", axes, kernel)
        return channels_first(lambda x: functions[axes - 1](x, kernel, stride, padding, **more), x)

    return layer


def norm(scope, x):
    channels, epsilon = x.shape[-1], scope.get("epsilon", 1e-5)
    weight, bias = scope.weight("weight", [channels], around=1.0), scope.weight("bias", [channels])
    if scope.get("norm") == "layer":
        return F.layer_norm(x, [channels], weight, bias, epsilon)
    if scope.get("norm") == "group":
        return channels_first(lambda x: F.group_norm(x, scope.get("groups"), weight, bias, epsilon), x)
    mean, variance = scope.statistic("running_mean", channels, 0.0, 0.1), scope.statistic("running_var", channels, 1.0, 0.2)
    # What is frozen norms by what it has seen before, as after `eval()`.
    training, momentum = scope.network.training and not scope.get("frozen", False), scope.get("momentum", 0.1)
    return channels_first(lambda x: F.batch_norm(x, mean, variance, weight, bias, training, momentum, epsilon), x)


def sparse(scope, x):
    """Dense values, then pairs of a place and a value."""
    pairs = x[:, x.shape[1] - 2 * scope.get("pairs"):].reshape(len(x), -1, 2)
    weight = scope.weight("weight", [scope.get("places"), scope.get("sparse")], spread=1.0)
    sums = F.embedding_bag(pairs[:, :, 0].long(), weight, per_sample_weights=pairs[:, :, 1], mode="sum")
    return torch.cat([x[:, : x.shape[1] - 2 * scope.get("pairs")], sums], 1)


def residual(scope, x):
    inner = scope.network.run(scope.get("residual"), x, scope.path + "residual.")
    return inner + scope.network.run(scope.get("shortcut", []), x, scope.path + "shortcut.")


LAYERS = {
    "residual": residual,
    "dense": dense,
    "conv": conv,
    "depthwise": depthwise,
    "max_pool": pool("max_pool", [F.max_pool1d, F.max_pool2d]),
    "average_pool": pool("average_pool", [F.avg_pool1d, F.avg_pool2d], count_include_pad=False),
    "global_average_pool": lambda scope, x: x.flatten(1, -2).mean(1),
    "global_max_pool": lambda scope, x: x.flatten(1, -2).max(1).values,
    "flatten": lambda scope, x: x.flatten(1),
    "reshape": lambda scope, x: x.reshape(len(x), *scope.get("reshape")),
    "dropout": lambda scope, x: F.dropout(x, scope.get("dropout")),
    "norm": norm,
    "embedding": lambda scope, x: F.embedding(x, scope.weight("weight", [scope.get("tokens"), scope.get("embedding")], spread=1.0)),
    "sparse": sparse,
    "activation": lambda scope, x: ACTIVATIONS[scope.get("activation")](x),
}


def mean_loss(settings, output, target):
    kind = settings["kind"]
    if kind == "cross_entropy":
        weights = settings.get("class_weights")
        weights = None if weights is None else torch.tensor(weights).double()
        return F.cross_entropy(output, target, weights, label_smoothing=settings.get("smoothing", 0.0))
    if kind == "huber":
        return F.huber_loss(output, target, delta=settings["delta"])
    return {"binary": F.binary_cross_entropy_with_logits, "mse": F.mse_loss, "mae": F.l1_loss}[kind](output, target)


def optimizer_of(settings, weights):
    """PyTorch's optimizer. Its weight decay is an L2 penalty, but for AdamW, and touches biases and norms as well."""
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
    more = {key: value for key, value in settings.items() if key not in ("kind", "learning_rate", "clip_norm")}
    return kinds[settings["kind"]](weights, lr=settings["learning_rate"], **more)


def decimals(values):
    """Rounded to three decimals and single precision, in double precision."""
    return (values * 1e3).round().div(1e3).float().double()


def case(name, input, layers, loss="mse", batch=2, scale=1.0, optimizer=None):
    """A case's values. The seed is its name, so that one more case leaves the others as they are."""
    loss = {"kind": loss} if isinstance(loss, str) else loss
    generator = torch.Generator().manual_seed(sum(byte * 31**place for place, byte in enumerate(name.encode())) % 2**32)
    draw = lambda shape: torch.randn(list(shape), generator=generator)
    network = Network(layers, draw)
    tokens = next((layer["tokens"] for layer in layers if "tokens" in layer), None)
    columns = next((layer for layer in layers if "sparse" in layer), None)
    if tokens:
        x = torch.randint(tokens, [batch, *input], generator=generator)
    elif columns:
        x = decimals(draw([batch, *input]))
        places = torch.randint(columns["places"], [batch, columns["pairs"]], generator=generator)
        x[:, input[0] - 2 * columns["pairs"]::2] = places
    else:
        x = decimals(scale * draw([batch, *input])).requires_grad_()

    # Evaluation mode leaves the statistics alone: this only draws the weights and tells the shape of the output.
    network.training = False
    shape = network(x).shape
    network.training = True
    start = copy.deepcopy(network)
    if loss["kind"] == "cross_entropy":
        target = torch.randint(shape[-1], [batch], generator=generator)
    elif loss["kind"] == "binary":
        target = torch.randint(2, shape, generator=generator).double()
    else:
        target = decimals(draw(shape))
    output = network(x)
    value = mean_loss(loss, output, target)
    value.backward()

    case = dict(name=name, input=input, batch=batch, layers=layers, loss=loss)
    if optimizer:
        case |= dict(optimizer=optimizer)
    case |= dict(x=numbers(x), target=numbers(target))
    case |= dict(weights={name: dict(shape=list(weight.shape), values=numbers(weight)) for name, weight in start.named().items()})
    case |= dict(output=numbers(output), loss_value=number(value))
    case |= dict(gradients={name: numbers(weight.grad) for name, weight in network.weights.items() if weight.requires_grad})
    if not tokens and not columns:
        case |= dict(x_gradient=numbers(x.grad))
    if network.statistics:
        case |= dict(running={name: numbers(value) for name, value in network.statistics.items()})
        network.training = False
        case |= dict(prediction=numbers(network(x)))
    if optimizer:
        case |= dict(steps=stepped(start, optimizer, lambda: mean_loss(loss, start(x.detach()), target)))
    return case


def stepped(network, settings, loss):
    optimizer = optimizer_of(settings, [weight for weight in network.weights.values() if weight.requires_grad])
    for _ in range(3):
        optimizer.zero_grad()
        loss().backward()
        if "clip_norm" in settings:
            torch.nn.utils.clip_grad_norm_(network.weights.values(), settings["clip_norm"])
        optimizer.step()
    return {name: numbers(value) for name, value in network.named().items()}


def number(value):
    """A Python number, of as many digits as single precision needs."""
    value = value.item()
    assert math.isfinite(value)
    return value if isinstance(value, int) else float(str(np.float32(value)))


def numbers(values):
    return [number(value) for value in values.detach().flatten()]


def one(layer):
    """A layer alone, as a network whose output is flat."""
    return [layer, "flatten"]


def convolutions():
    for name, input, layer in [
        ("conv_1_to_1", [5, 4, 1], {"conv": 1, "kernel": 3}),
        ("conv_3_to_5", [5, 4, 3], {"conv": 5, "kernel": 3, "bias": False}),
        ("conv_whole_input", [3, 4, 2], {"conv": 3, "kernel": [3, 4]}),
        ("conv_wide_kernel", [6, 7, 2], {"conv": 3, "kernel": [3, 5], "padding": [1, 2]}),
        ("conv_tall_kernel", [7, 5, 2], {"conv": 3, "kernel": [5, 1], "padding": "same"}),
        ("conv_even_kernel_same", [5, 6, 2], {"conv": 3, "kernel": [2, 4], "padding": "same"}),
        ("conv_kernel_5_padding_2", [6, 5, 2], {"conv": 3, "kernel": 5, "padding": 2}),
        ("conv_padding_beyond_kernel", [3, 4, 2], {"conv": 3, "kernel": 2, "padding": 3}),
        ("conv_same", [4, 5, 3], {"conv": 4, "kernel": 3, "padding": "same"}),
        ("conv_same_input_smaller_than_kernel", [2, 3, 2], {"conv": 3, "kernel": 5, "padding": "same"}),
        ("conv_same_stride_2_odd", [7, 5, 2], {"conv": 3, "kernel": 3, "stride": 2, "padding": "same"}),
        ("conv_same_stride_3", [8, 7, 2], {"conv": 3, "kernel": 3, "stride": 3, "padding": "same"}),
        ("conv_same_dilation_2", [6, 7, 2], {"conv": 3, "kernel": 3, "dilation": 2, "padding": "same"}),
        ("conv_same_stride_2_dilation_3", [8, 9, 2], {"conv": 3, "kernel": 3, "stride": 2, "dilation": 3, "padding": "same"}),
        ("conv_stride_2", [8, 7, 2], {"conv": 3, "kernel": 3, "stride": 2}),
        ("conv_stride_2_padding_1", [8, 7, 2], {"conv": 3, "kernel": 3, "stride": 2, "padding": 1}),
        ("conv_stride_3", [9, 11, 2], {"conv": 3, "kernel": 3, "stride": 3}),
        ("conv_stride_beyond_kernel", [8, 9, 2], {"conv": 3, "kernel": 2, "stride": 3}),
        ("conv_strides_differ", [8, 7, 2], {"conv": 3, "kernel": 3, "stride": [1, 2], "padding": [0, 1]}),
        ("conv_stem", [9, 8, 2], {"conv": 3, "kernel": 7, "stride": 2, "padding": 3}),
        ("conv_dilations_differ", [8, 7, 2], {"conv": 3, "kernel": 3, "dilation": [1, 3], "padding": [1, 2]}),
        ("conv_stride_2_dilation_2", [10, 9, 2], {"conv": 3, "kernel": 3, "stride": 2, "dilation": 2, "padding": 2}),
        ("conv_stride_2_dilation_3", [11, 10, 2], {"conv": 3, "kernel": 3, "stride": 2, "dilation": 3, "padding": 1}),
        ("conv_stride_3_dilation_2", [11, 10, 2], {"conv": 3, "kernel": 3, "stride": 3, "dilation": 2, "padding": 1}),
        ("conv_1x1", [3, 4, 5], {"conv": 3, "kernel": 1}),
        ("conv_1x1_5_to_70", [2, 1, 5], {"conv": 70, "kernel": 1}),
        ("conv_1x1_stride_2", [5, 6, 5], {"conv": 3, "kernel": 1, "stride": 2}),
        ("conv_1x1_stride_3_padding_1", [5, 6, 3], {"conv": 4, "kernel": 1, "stride": 3, "padding": 1}),
        ("conv_1_to_33", [4, 3, 1], {"conv": 33, "kernel": 3}),
        ("conv_3_to_17", [3, 2, 3], {"conv": 17, "kernel": 3, "padding": 1}),
        ("conv_17_to_3", [3, 2, 17], {"conv": 3, "kernel": 3, "padding": 1}),
        ("conv_70_to_1", [2, 2, 70], {"conv": 1, "kernel": 2}),
        ("conv_1_to_70", [3, 4, 1], {"conv": 70, "kernel": 2, "stride": 2}),
        ("conv_long_rows", [2, 37, 1], {"conv": 2, "kernel": 3, "padding": 1}),
        ("conv_groups_2", [5, 4, 4], {"conv": 6, "kernel": 3, "groups": 2}),
        ("conv_groups_3_stride_2", [5, 4, 6], {"conv": 9, "kernel": 3, "stride": 2, "padding": 1, "groups": 3}),
        ("conv_groups_2_dilation_2", [5, 6, 4], {"conv": 2, "kernel": 3, "dilation": 2, "padding": "same", "groups": 2}),
        ("conv_gelu", [5, 4, 3], {"conv": 4, "kernel": 3, "padding": "same", "activation": "gelu"}),
        ("depthwise", [5, 6, 3], {"depthwise": 3}),
        ("depthwise_5", [6, 5, 3], {"depthwise": 5, "padding": "same"}),
        ("depthwise_33", [3, 2, 33], {"depthwise": [3, 2], "padding": [1, 0], "bias": False}),
        ("depthwise_stride_2", [7, 6, 3], {"depthwise": 3, "stride": 2, "padding": "same"}),
        ("depthwise_multiplier_2", [5, 4, 3], {"depthwise": 3, "multiplier": 2, "padding": 1}),
        ("depthwise_stride_2_multiplier_2", [6, 7, 3], {"depthwise": 3, "stride": 2, "padding": 1, "multiplier": 2, "activation": "relu6"}),
        ("conv_1d", [9, 3], {"conv": 4, "kernel": 3}),
        ("conv_1d_same_stride_2", [10, 3], {"conv": 5, "kernel": 5, "stride": 2, "padding": "same"}),
        ("conv_1d_stride_3_dilation_2", [14, 2], {"conv": 3, "kernel": 3, "stride": 3, "dilation": 2, "padding": 2}),
        ("conv_1d_kernel_1_33_to_5", [4, 33], {"conv": 5, "kernel": 1}),
        ("conv_1d_one_channel", [20, 1], {"conv": 17, "kernel": 7, "stride": 2, "padding": 3}),
        ("depthwise_1d_multiplier_2", [9, 3], {"depthwise": 3, "stride": 2, "padding": "same", "multiplier": 2}),
    ]:
        yield case(name, input, one(layer))
    # Many channels, for which there is another way.
    for name, input, layer in [
        ("conv_by_tiles", [11, 15, 16], {"conv": 16, "kernel": 3}),
        ("conv_by_tiles_same", [8, 13, 16], {"conv": 32, "kernel": 3, "padding": "same", "activation": "relu"}),
        ("conv_by_tiles_wide_border", [8, 12, 16], {"conv": 16, "kernel": 3, "padding": 2, "bias": False}),
    ]:
        yield case(name, input, one(layer), batch=1)
    yield case("conv_one_sample", [5, 4, 3], one({"conv": 4, "kernel": 3}), batch=1)
    yield case("conv_seven_samples", [3, 4, 2], one({"conv": 3, "kernel": 3, "padding": "same"}), batch=7)


def pools():
    for name, input, layer in [
        ("max_pool", [6, 4, 3], {"max_pool": 2}),
        ("max_pool_leftover", [7, 5, 2], {"max_pool": 2}),
        ("max_pool_wide", [6, 7, 2], {"max_pool": [2, 3]}),
        ("max_pool_overlapping", [7, 6, 2], {"max_pool": 3, "stride": 2}),
        ("max_pool_padding_1", [8, 7, 2], {"max_pool": 3, "stride": 2, "padding": 1}),
        ("max_pool_with_gaps", [8, 7, 2], {"max_pool": 2, "stride": 3}),
        ("max_pool_33", [3, 2, 33], {"max_pool": 2, "stride": 1}),
        ("max_pool_1d", [9, 5], {"max_pool": 3, "stride": 2, "padding": 1}),
        ("average_pool", [7, 5, 2], {"average_pool": 2}),
        ("average_pool_wide", [3, 8, 5], {"average_pool": [1, 3], "stride": [2, 2]}),
        ("average_pool_padding_1", [8, 7, 2], {"average_pool": 3, "stride": 2, "padding": 1}),
        ("average_pool_1d", [9, 5], {"average_pool": 4, "stride": 3, "padding": 2}),
        ("global_average_pool", [4, 3, 5], "global_average_pool"),
        ("global_max_pool", [3, 4, 5], "global_max_pool"),
    ]:
        yield case(name, input, one(layer))


def dense_and_shapes():
    yield case("dense", [5], [{"dense": 3}])
    yield case("dense_without_bias", [7], [{"dense": 4, "bias": False}])
    yield case("dense_one_to_one", [1], [{"dense": 1}], batch=5)
    yield case("dense_33_to_5", [33], [{"dense": 5}], batch=3)
    yield case("dense_5_to_70", [5], [{"dense": 70, "activation": "relu"}, {"dense": 1}], batch=3)
    yield case("dense_many_samples", [3], [{"dense": 5, "activation": "tanh"}], batch=37)
    yield case("dense_three", [6], [{"dense": 9, "activation": "relu"}, {"dense": 5, "activation": "relu"}, {"dense": 2}], batch=4)
    yield case("dense_on_a_sequence", [4, 3], [{"dense": 5, "activation": "relu"}, "flatten", {"dense": 2}], batch=3)
    yield case("sparse", [3 + 2 * 4], [{"sparse": 5, "places": 9, "pairs": 4}, {"dense": 6, "activation": "relu"}, {"dense": 2}], batch=7)
    yield case("sparse_alone", [2 * 3], [{"sparse": 17, "places": 5, "pairs": 3}, {"dense": 1}], batch=3)
    yield case("flatten_is_channels_last", [3, 2, 4], ["flatten", {"dense": 3}])
    yield case("reshape_to_image", [24], [{"reshape": [4, 3, 2]}, {"conv": 3, "kernel": 2}, "flatten"])
    yield case("reshape_to_row", [4, 3, 2], [{"conv": 2, "kernel": 1}, {"reshape": [24]}, {"dense": 3}])
    yield case("dropout_0", [5], [{"dense": 4, "activation": "relu"}, {"dropout": 0.0}, {"dense": 2}])
    yield case("embedding_mean", [7], [{"embedding": 5, "tokens": 11}, "global_average_pool", {"dense": 3}], batch=3)
    yield case("embedding_conv", [9], [{"embedding": 5, "tokens": 6}, {"conv": 4, "kernel": 3, "activation": "relu"}, "global_max_pool", {"dense": 2}])
    for activation in ACTIVATIONS:
        # Wide, so that all saturate somewhere.
        yield case(f"dense_{activation}", [4], [{"dense": 7, "activation": activation}, {"dense": 2}], batch=5, scale=4.0)
    yield case("activation_alone", [3, 4, 2], [{"activation": "silu"}, "flatten", {"activation": "leaky_relu"}], scale=3.0)


def norms():
    yield case("batch_norm", [5], [{"norm": "batch"}], batch=6)
    yield case("batch_norm_settings", [7], [{"norm": "batch", "epsilon": 0.01, "momentum": 0.3, "activation": "relu"}], batch=5)
    yield case("batch_norm_image", [3, 2, 5], one({"norm": "batch"}), batch=3)
    yield case("batch_norm_1d", [3, 17], one({"norm": "batch"}))
    yield case("layer_norm", [7], [{"norm": "layer"}], batch=3)
    yield case("layer_norm_image", [3, 2, 5], one({"norm": "layer", "epsilon": 0.001}))
    yield case("layer_norm_33", [33], [{"norm": "layer", "activation": "gelu"}])
    yield case("group_norm", [3, 4, 6], one({"norm": "group", "groups": 3}))
    yield case("group_norm_one_group", [4, 3, 5], one({"norm": "group", "groups": 1, "activation": "relu"}))
    yield case("group_norm_1d", [5, 4], one({"norm": "group", "groups": 2}))
    conv_norm = [{"conv": 4, "kernel": 3, "padding": 1, "bias": False}, {"norm": "batch", "activation": "relu"}]
    yield case("conv_batch_norm", [5, 4, 3], [*conv_norm, "global_average_pool", {"dense": 3}], batch=3)
    # A bias before batch norm changes nothing: its gradient is zero but for rounding.
    yield case("conv_bias_batch_norm", [4, 3, 2], [{"conv": 3, "kernel": 3}, {"norm": "batch"}, "flatten"], batch=3)


def block(filters, stride=1, **more):
    """ResNet's basic block."""
    return {
        "residual": [
            {"conv": filters, "kernel": 3, "stride": stride, "padding": 1, "bias": False},
            {"norm": "batch", "activation": "relu"},
            {"conv": filters, "kernel": 3, "padding": 1, "bias": False},
            {"norm": "batch"},
        ],
        "activation": "relu",
        **more,
    }


def downsampling(filters):
    return block(filters, 2, shortcut=[{"conv": filters, "kernel": 1, "stride": 2, "bias": False}, {"norm": "batch"}])


def combinations():
    cross_entropy = "cross_entropy"
    yield case("residual_dense", [5], [{"residual": [{"dense": 7, "activation": "relu"}, {"dense": 5}]}, {"dense": 2}], batch=3)
    yield case("residual_shortcut", [5], [{"dense": 4}, {"residual": [{"dense": 3}], "shortcut": [{"dense": 3, "bias": False}], "activation": "relu"}], batch=3)
    yield case("residual_nested", [4], [{"residual": [{"dense": 4, "activation": "tanh"}, {"residual": [{"dense": 4}], "activation": "silu"}]}], batch=3)
    yield case("residual_block", [4, 3, 2], [block(2), "global_average_pool"], batch=3)
    yield case("residual_downsampling", [5, 6, 2], [downsampling(3), "global_average_pool", {"dense": 3}], cross_entropy, batch=3)
    small_resnet = [
        {"conv": 2, "kernel": 7, "stride": 2, "padding": 3, "bias": False},
        {"norm": "batch", "activation": "relu"},
        {"max_pool": 3, "stride": 2, "padding": 1},
        block(2),
        downsampling(3),
        "global_average_pool",
        {"dense": 4},
    ]
    yield case("small_resnet", [9, 11, 1], small_resnet, cross_entropy, batch=3)
    inverted = [{"conv": 6, "kernel": 1, "activation": "relu6"}, {"depthwise": 3, "padding": "same", "activation": "relu6"}, {"conv": 3, "kernel": 1}]
    yield case("inverted_residual", [4, 5, 3], [{"residual": inverted}, "global_average_pool"])
    small_cnn = [
        {"conv": 4, "kernel": 3, "activation": "relu"},
        {"max_pool": 2},
        {"conv": 5, "kernel": 3, "activation": "relu"},
        {"max_pool": 2},
        "flatten",
        {"dense": 6, "activation": "relu"},
        {"dense": 3},
    ]
    yield case("small_cnn", [12, 11, 1], small_cnn, cross_entropy, batch=3)
    tiles = [
        {"conv": 16, "kernel": 1},
        {"residual": [{"conv": 16, "kernel": 3, "padding": 1, "activation": "relu"}]},
        {"conv": 16, "kernel": 3, "activation": "relu"},
        {"max_pool": 2},
        "global_average_pool",
        {"dense": 3},
    ]
    yield case("tiles_stack", [13, 15, 2], tiles, cross_entropy, batch=3)
    yield case("conv_1d_stack", [17, 2], [{"conv": 4, "kernel": 3, "activation": "relu"}, {"max_pool": 2}, {"conv": 3, "kernel": 3, "padding": "same"}, {"norm": "layer"}, "global_average_pool"])
    mixed = [{"norm": "group", "groups": 2}, {"conv": 6, "kernel": 1, "activation": "silu"}, {"average_pool": 2}, {"conv": 2, "kernel": 3, "padding": "same"}, "flatten"]
    yield case("mixed_stack", [6, 5, 4], mixed)
    yield case("frozen_dense", [5], [{"dense": 4, "activation": "relu"}, {"dense": 3, "frozen": True}, {"dense": 2}], batch=3)
    yield case("frozen_batch_norm", [4, 3, 2], [{"conv": 3, "kernel": 3}, {"norm": "batch", "activation": "relu", "frozen": True}, "flatten", {"dense": 2}], batch=3)
    yield case("frozen_conv", [5, 4, 2], [{"conv": 3, "kernel": 3, "activation": "relu", "frozen": True}, "flatten", {"dense": 2}])


def losses():
    classes, values = [{"dense": 5}], [{"dense": 3}]
    for name, loss, layers in [
        ("cross_entropy", "cross_entropy", classes),
        ("cross_entropy_smoothing", {"kind": "cross_entropy", "smoothing": 0.1}, classes),
        ("cross_entropy_class_weights", {"kind": "cross_entropy", "class_weights": [0.5, 2.0, 1.0, 0.25, 3.0]}, classes),
        ("cross_entropy_smoothing_class_weights", {"kind": "cross_entropy", "smoothing": 0.2, "class_weights": [0.5, 2.0, 1.0, 0.25, 3.0]}, classes),
        ("binary", "binary", [{"dense": 1}]),
        ("binary_of_several", "binary", values),
        ("mse", "mse", values),
        ("mae", "mae", values),
        ("huber", {"kind": "huber", "delta": 1.0}, values),
        ("huber_delta", {"kind": "huber", "delta": 0.25}, values),
    ]:
        yield case(f"loss_{name}", [4], layers, loss, batch=7)
    # Logits of tens: a loss that takes the exponential first overflows or loses all digits.
    yield case("loss_cross_entropy_large", [4], [{"dense": 5}], "cross_entropy", batch=4, scale=60.0)
    yield case("loss_binary_large", [4], [{"dense": 1}], "binary", batch=6, scale=60.0)


def optimizers():
    layers = [{"dense": 6, "activation": "tanh"}, {"dense": 3}]
    for name, optimizer in [
        ("sgd", dict(kind="sgd", learning_rate=0.1)),
        ("sgd_weight_decay", dict(kind="sgd", learning_rate=0.1, weight_decay=0.1)),
        ("sgd_momentum", dict(kind="sgd", learning_rate=0.1, momentum=0.9)),
        ("sgd_nesterov", dict(kind="sgd", learning_rate=0.1, momentum=0.9, nesterov=True)),
        ("sgd_nesterov_weight_decay", dict(kind="sgd", learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
        ("adam", dict(kind="adam", learning_rate=0.01)),
        ("adam_weight_decay", dict(kind="adam", learning_rate=0.01, weight_decay=0.1)),
        ("adamw", dict(kind="adamw", learning_rate=0.01, weight_decay=0.01)),
        ("rmsprop", dict(kind="rmsprop", learning_rate=0.01)),
        ("sgd_clipped", dict(kind="sgd", learning_rate=0.1, clip_norm=0.5)),
        ("sgd_not_reaching_the_clip", dict(kind="sgd", learning_rate=0.1, clip_norm=50.0)),
        ("adam_clipped", dict(kind="adam", learning_rate=0.01, clip_norm=0.5)),
    ]:
        yield case(f"optimizer_{name}", [5], layers, "cross_entropy", batch=6, scale=2.0, optimizer=optimizer)
    columns = [{"sparse": 4, "places": 50, "pairs": 3}, {"dense": 2}]
    yield case("optimizer_sparse", [2 + 2 * 3], columns, batch=5, optimizer=dict(kind="adam", learning_rate=0.01))
    frozen = [{"dense": 4, "activation": "tanh", "frozen": True}, {"dense": 2}]
    yield case("optimizer_frozen", [3], frozen, batch=5, optimizer=dict(kind="adamw", learning_rate=0.01, weight_decay=0.5))
    convolution = [{"conv": 3, "kernel": 3, "bias": False}, {"norm": "batch", "activation": "relu"}, "global_average_pool", {"dense": 3}]
    yield case("optimizer_batch_norm", [5, 4, 2], convolution, "cross_entropy", batch=4, optimizer=dict(kind="sgd", learning_rate=0.1, momentum=0.9))
    embedding = [{"embedding": 4, "tokens": 9}, "global_average_pool", {"dense": 2}]
    yield case("optimizer_embedding", [3], embedding, "cross_entropy", batch=3, optimizer=dict(kind="adam", learning_rate=0.01))


def main():
    torch.set_num_threads(1)
    cases = [*convolutions(), *pools(), *dense_and_shapes(), *norms(), *combinations(), *losses(), *optimizers()]
    names = [case["name"] for case in cases]
    assert len(set(names)) == len(names), "two cases of one name"
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    print(f'{{"pytorch":"{torch.__version__}","cases":[\n' + ",\n".join(lines) + "\n]}")


if __name__ == "__main__":
    main()
