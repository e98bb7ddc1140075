//! Augmentation in words: as the command line asks for it, and as a person reads what was asked.

use std::fmt;

use super::{Augment, AugmentFault, Fill, OneOrTwo};

/// What the command line calls a sensible set.
pub(super) const STANDARD: &str = "standard";
/// What else it knows.
pub(super) const OPTIONS: [&str; 16] = [
    "flip",
    "horizontal_flip",
    "vertical_flip",
    "rotation",
    "shift",
    "shear",
    "zoom",
    "fill",
    "crop",
    "brightness",
    "contrast",
    "saturation",
    "hue",
    "erase",
    "mixup",
    "cutmix",
];

impl Augment {
    /// A set that helps with most photographs: they are turned left to right, and moved, turned and scaled by a tenth.
    pub fn standard() -> Augment {
        Augment {
            horizontal_flip: true,
            rotation: Some(10.0),
            shift: Some(OneOrTwo::One(0.1)),
            zoom: Some(OneOrTwo::One(0.1)),
            ..Augment::default()
        }
    }

    /// Reads what the command line says: parts with commas between them. A later part replaces an earlier one.
    ///
    /// ```
    /// use tidegate_data::images::Augment;
    /// let augment = Augment::parse("flip,rotation=20,zoom=0.8:1.2").unwrap();
    /// assert_eq!(augment.describe(), "horizontal flip · rotation ±20° · zoom 0.8–1.2");
    /// let fault = Augment::parse("flip,rotaton=20").unwrap_err();
    /// assert_eq!(fault.to_string(), "augment: there is no \"rotaton\"");
    /// assert_eq!(fault.hint(), "did you mean rotation?");
    /// ```
    pub fn parse(text: &str) -> Result<Augment, AugmentFault> {
        let mut augment = Augment::default();
        for part in text.split(',') {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name, Some(value.trim())),
                None => (part, None),
            };
            augment.set(name.trim(), value)?;
        }
        augment.check()?;
        Ok(augment)
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), AugmentFault> {
        match name.to_lowercase().replace('-', "_").as_str() {
            STANDARD if flag("standard", value)? => *self = Augment::standard(),
            STANDARD => {}
            "flip" | "horizontal_flip" => self.horizontal_flip = flag("horizontal_flip", value)?,
            "vertical_flip" => self.vertical_flip = flag("vertical_flip", value)?,
            "rotation" => self.rotation = Some(number("rotation", value, "20")?),
            "shift" => self.shift = Some(one_or_two("shift", value, "0.1 or 0.1:0.2")?),
            "shear" => self.shear = Some(number("shear", value, "10")?),
            "zoom" => self.zoom = Some(one_or_two("zoom", value, "0.2 or 0.8:1.2")?),
            "fill" => self.fill = fill(value)?,
            "crop" => self.crop = Some(one_or_two("crop", value, "0.5 or 0.5:1")?),
            "brightness" => self.brightness = Some(one_or_two("brightness", value, "0.2 or 0.8:1.2")?),
            "contrast" => self.contrast = Some(one_or_two("contrast", value, "0.2 or 0.8:1.2")?),
            "saturation" => self.saturation = Some(one_or_two("saturation", value, "0.2 or 0.8:1.2")?),
            "hue" => self.hue = Some(number("hue", value, "0.05")?),
            "erase" => self.erase = Some(number("erase", value, "0.25")?),
            "mixup" => self.mixup = Some(number("mixup", value, "0.2")?),
            "cutmix" => self.cutmix = Some(number("cutmix", value, "1")?),
            _ => return Err(AugmentFault::Unknown { name: name.into() }),
        }
        Ok(())
    }

    /// What is done, in a line.
    pub fn describe(&self) -> String {
        match self.parts() {
            parts if parts.is_empty() => "nothing".into(),
            parts => parts.join(" · "),
        }
    }

    /// What has any effect, in words.
    pub(super) fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let some = |x: Option<f64>| x.filter(|x| *x != 0.0);
        let between = |name: &str, numbers: Option<OneOrTwo>| {
            let [low, high] = numbers?.around_one();
            let (low, high) = (short(low), short(high));
            match low == high {
                true if low == "1" => None,
                true => Some(format!("{name} {low}")),
                false => Some(format!("{name} {low}–{high}")),
            }
        };
        if self.horizontal_flip {
            parts.push("horizontal flip".into());
        }
        if self.vertical_flip {
            parts.push("vertical flip".into());
        }
        parts.extend(some(self.rotation).map(|x| format!("rotation ±{}°", short(x))));
        match self.shift.map(OneOrTwo::each) {
            None | Some([0.0, 0.0]) => {}
            Some([x, y]) if x == y => parts.push(format!("shift ±{}", short(x))),
            Some([x, y]) => parts.push(format!("shift ±{} × ±{}", short(x), short(y))),
        }
        parts.extend(some(self.shear).map(|x| format!("shear ±{}°", short(x))));
        parts.extend(between("zoom", self.zoom));
        // Even the whole is scaled: stored samples are larger.
        let crop = self.crop.map(OneOrTwo::up_to_one);
        parts.extend(crop.map(|[low, high]| format!("crop {}–{}", short(low), short(high))));
        if !parts.is_empty() && !self.fill.is_usual() {
            parts.push(format!("fill {}", self.fill.word()));
        }
        parts.extend(between("brightness", self.brightness));
        parts.extend(between("contrast", self.contrast));
        parts.extend(between("saturation", self.saturation));
        parts.extend(some(self.hue).map(|x| format!("hue ±{}", short(x))));
        parts.extend(some(self.erase).map(|x| format!("erase {} %", short(100.0 * x))));
        parts.extend(self.mixup.map(|x| format!("mixup {}", short(x))));
        parts.extend(self.cutmix.map(|x| format!("cutmix {}", short(x))));
        parts
    }
}

/// As a job file has it.
impl fmt::Display for OneOrTwo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OneOrTwo::One(x) => write!(f, "{x}"),
            OneOrTwo::Two([low, high]) => write!(f, "[{low}, {high}]"),
        }
    }
}

/// At most four digits after the point: 1 − 0.9 is not 0.1 to the last bit.
fn short(x: f64) -> String {
    ((x * 1e4).round() / 1e4).to_string()
}

/// An option that is named is wanted.
fn flag(option: &'static str, value: Option<&str>) -> Result<bool, AugmentFault> {
    match value {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(AugmentFault::NotThat {
            option,
            value: other.into(),
            expected: "true or false",
            hint: format!("write {option} alone"),
        }),
    }
}

fn number(option: &'static str, value: Option<&str>, example: &str) -> Result<f64, AugmentFault> {
    let value = wanted(option, value, example)?;
    value.parse().map_err(|_| AugmentFault::NotThat {
        option,
        value: value.into(),
        expected: "a number",
        hint: such_as(option, example),
    })
}

/// Two numbers have a colon between them: the comma ends the part.
fn one_or_two(option: &'static str, value: Option<&str>, example: &str) -> Result<OneOrTwo, AugmentFault> {
    let value = wanted(option, value, example)?;
    let read = match value.split_once(':') {
        Some((low, high)) => match (low.trim().parse(), high.trim().parse()) {
            (Ok(low), Ok(high)) => Some(OneOrTwo::Two([low, high])),
            _ => None,
        },
        None => value.parse().ok().map(OneOrTwo::One),
    };
    read.ok_or_else(|| AugmentFault::NotThat {
        option,
        value: value.into(),
        expected: "a number, nor two",
        hint: such_as(option, example),
    })
}

fn fill(value: Option<&str>) -> Result<Fill, AugmentFault> {
    let all = [Fill::Nearest, Fill::Reflect, Fill::Wrap, Fill::Constant];
    let value = wanted("fill", value, "reflect")?;
    let found = all.into_iter().find(|fill| fill.word() == value.to_lowercase());
    found.ok_or_else(|| AugmentFault::NotThat {
        option: "fill",
        value: value.into(),
        expected: "a way to fill",
        hint: format!("there are {}", all.map(Fill::word).join(", ")),
    })
}

fn wanted<'a>(option: &'static str, value: Option<&'a str>, example: &str) -> Result<&'a str, AugmentFault> {
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| AugmentFault::NoValue {
        option,
        hint: such_as(option, example),
    })
}

fn such_as(option: &str, example: &str) -> String {
    format!("write {option}={example}")
}
