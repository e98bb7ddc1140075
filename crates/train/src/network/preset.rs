//! Networks that go by a name.

use super::layer::{
    Activation, Axes, Conv, Dense, Depthwise, Kind, Layer, Norm, Over, Padding, Pool, PoolKind, Residual,
    Units,
};
use super::shape::Shape;

/// A network that goes by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Two dense layers.
    Mlp,
    /// Convolutions and max-pools until little of the image is left, then a dense layer.
    Cnn,
    /// The residual network of 18 layers (He and others, 2015), with the names of weights that torchvision has. Small images
    /// keep their size at its start.
    Resnet18,
    /// A compact one of depthwise convolutions and inverted residuals (Sandler and others, 2018).
    Mobilenet,
}

impl Preset {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Mlp => "mlp",
            Preset::Cnn => "cnn",
            Preset::Resnet18 => "resnet18",
            Preset::Mobilenet => "mobilenet",
        }
    }

    /// The layers for samples of a shape, the outputs' not included.
    pub fn layers(self, input: &Shape) -> Vec<Layer> {
        match self {
            Preset::Mlp => mlp(input),
            Preset::Cnn => cnn(input),
            Preset::Resnet18 => resnet18(input),
            Preset::Mobilenet => mobilenet(input),
        }
    }

    /// What suits samples of a shape.
    pub fn for_samples(input: &Shape) -> Preset {
        match input.image() {
            Some([rows, columns, _]) if rows * columns >= 16 => Preset::Cnn,
            _ => Preset::Mlp,
        }
    }
}

const RELU: Option<Activation> = Some(Activation::Relu);

fn mlp(input: &Shape) -> Vec<Layer> {
    let dense = |units| Layer::new(dense(Units::Fixed(units), RELU));
    let flat = (input.0.len() > 1).then(|| Layer::new(Kind::Flatten));
    flat.into_iter().chain([dense(256), dense(128)]).collect()
}

fn cnn(input: &Shape) -> Vec<Layer> {
    let mut layers = Vec::new();
    let [mut rows, mut columns, _] = input.image().unwrap_or([1, 1, 1]);
    let mut channels = 32;
    // A pool halves the image; below 8 there is little left to look at.
    while rows.max(columns) >= 8 && channels <= 128 {
        layers.push(Layer::new(Kind::Conv(Conv {
            activation: RELU,
            ..conv(channels, 3, 1, Padding::Same, true)
        })));
        let size = [rows.min(2), columns.min(2)];
        layers.push(Layer::new(Kind::Pool(
            PoolKind::Max,
            Pool {
                size: Axes::Each(size),
                stride: None,
                padding: Padding::Valid,
            },
        )));
        (rows, columns) = (rows / size[0], columns / size[1]);
        channels *= 2;
    }
    layers.extend([
        Layer::new(Kind::Flatten),
        Layer::new(Kind::Dropout(0.25)),
        Layer::new(dense(Units::Fixed(128), RELU)),
    ]);
    layers
}

fn resnet18(input: &Shape) -> Vec<Layer> {
    let named = |kind: Kind, name: &str| Layer::new(kind).named(name);
    let small = input
        .image()
        .is_some_and(|[rows, columns, _]| rows.max(columns) < 64);
    let mut layers = vec![
        match small {
            true => named(
                Kind::Conv(conv(64, 3, 1, Padding::Zeros(Axes::All(1)), false)),
                "conv1",
            ),
            false => named(
                Kind::Conv(conv(64, 7, 2, Padding::Zeros(Axes::All(3)), false)),
                "conv1",
            ),
        },
        named(batch_norm(RELU), "bn1"),
    ];
    if !small {
        layers.push(Layer::new(Kind::Pool(
            PoolKind::Max,
            Pool {
                size: Axes::All(3),
                stride: Some(Axes::All(2)),
                padding: Padding::Zeros(Axes::All(1)),
            },
        )));
    }
    let one = Padding::Zeros(Axes::All(1));
    for (stage, channels) in [64, 128, 256, 512].into_iter().enumerate() {
        for block in 0..2 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let path = format!("layer{}.{block}", stage + 1);
            let at = |kind: Kind, name: &str| named(kind, &format!("{path}.{name}"));
            let shortcut = match stride {
                1 => Vec::new(),
                _ => vec![
                    at(
                        Kind::Conv(conv(channels, 1, stride, Padding::Valid, false)),
                        "downsample.0",
                    ),
                    at(batch_norm(None), "downsample.1"),
                ],
            };
            let residual = Residual {
                main: vec![
                    at(Kind::Conv(conv(channels, 3, stride, one, false)), "conv1"),
                    at(batch_norm(RELU), "bn1"),
                    at(Kind::Conv(conv(channels, 3, 1, one, false)), "conv2"),
                    at(batch_norm(None), "bn2"),
                ],
                shortcut,
                activation: RELU,
            };
            layers.push(named(Kind::Residual(residual), &path));
        }
    }
    layers.push(Layer::new(Kind::GlobalPool(PoolKind::Average)));
    layers.push(named(dense(Units::Outputs, None), "fc"));
    layers
}

fn mobilenet(input: &Shape) -> Vec<Layer> {
    let small = input
        .image()
        .is_some_and(|[rows, columns, _]| rows.max(columns) < 64);
    let relu6 = Some(Activation::Relu6);
    let one = Padding::Zeros(Axes::All(1));
    let first = conv(16, 3, if small { 1 } else { 2 }, one, false);
    let mut layers = vec![Layer::new(Kind::Conv(first)), Layer::new(batch_norm(relu6))];
    let mut channels = 16;
    // Channels after a stage, its blocks, and the stride of the first.
    for (width, blocks, stride) in [(24, 2, 2), (32, 2, 2), (64, 3, 2), (96, 2, 1)] {
        for block in 0..blocks {
            let stride = if block == 0 { stride } else { 1 };
            let wide = 4 * channels;
            let main = vec![
                Layer::new(Kind::Conv(conv(wide, 1, 1, Padding::Valid, false))),
                Layer::new(batch_norm(relu6)),
                Layer::new(Kind::Depthwise(Depthwise {
                    kernel: Axes::All(3),
                    stride: Axes::All(stride),
                    padding: one,
                    dilation: Axes::All(1),
                    multiplier: 1,
                    bias: false,
                    activation: None,
                })),
                Layer::new(batch_norm(relu6)),
                Layer::new(Kind::Conv(conv(width, 1, 1, Padding::Valid, false))),
                Layer::new(batch_norm(None)),
            ];
            match stride == 1 && channels == width {
                true => layers.push(Layer::new(Kind::Residual(Residual {
                    main,
                    shortcut: Vec::new(),
                    activation: None,
                }))),
                false => layers.extend(main),
            }
            channels = width;
        }
    }
    layers.extend([
        Layer::new(Kind::Conv(conv(384, 1, 1, Padding::Valid, false))),
        Layer::new(batch_norm(relu6)),
        Layer::new(Kind::GlobalPool(PoolKind::Average)),
        Layer::new(Kind::Dropout(0.2)),
    ]);
    layers
}

fn conv(channels: usize, kernel: usize, stride: usize, padding: Padding, bias: bool) -> Conv {
    Conv {
        channels,
        kernel: Axes::All(kernel),
        stride: Axes::All(stride),
        padding,
        dilation: Axes::All(1),
        groups: 1,
        bias,
        activation: None,
    }
}

fn dense(units: Units, activation: Option<Activation>) -> Kind {
    Kind::Dense(Dense {
        units,
        bias: true,
        activation,
    })
}

fn batch_norm(activation: Option<Activation>) -> Kind {
    Kind::Norm(Norm {
        activation,
        ..Norm::new(Over::Batch)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Purpose};
    use super::*;

    fn weights(preset: Preset, input: &[usize], outputs: usize) -> usize {
        let input = Shape(input.to_vec());
        let purpose = Purpose {
            batch: 1,
            threads: 1,
            learning: None,
        };
        let program = Program::compile(&preset.layers(&input), &input, outputs, &purpose).unwrap();
        program.n_weights().0
    }

    #[test]
    fn presets_fit_samples_of_many_shapes() {
        for preset in [Preset::Cnn, Preset::Resnet18, Preset::Mobilenet] {
            for input in [[28, 28, 1], [32, 32, 3], [150, 150, 3], [64, 48, 3], [9, 7, 2]] {
                assert!(weights(preset, &input, 10) > 1000, "{preset:?} {input:?}");
            }
        }
        for input in [vec![7], vec![28, 28], vec![5, 5, 3], vec![2, 2, 2, 2]] {
            weights(Preset::Mlp, &input, 3);
        }
        weights(Preset::Cnn, &[100, 8], 2);
    }

    #[test]
    fn resnet18_is_the_one_that_people_know() {
        assert_eq!(weights(Preset::Resnet18, &[224, 224, 3], 1000), 11_689_512);
    }
}
