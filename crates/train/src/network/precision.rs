//! In how many bits numbers wait between operations, and what keeps slopes of few bits from becoming zero or infinite.

use serde::{Deserialize, Serialize};

/// What activations and slopes are kept in while they wait. Weights, and all sums, are of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    #[default]
    F32,
    /// The range of f32 with 8 bits of precision.
    Bf16,
    /// 11 bits of precision in a narrow range: slopes are scaled to be within it.
    F16,
}

impl Precision {
    /// Whether values take two bytes.
    pub(super) fn is_half(self) -> bool {
        self != Precision::F32
    }
}

/// What slopes are multiplied by, so that small ones do not vanish: as large as goes without overflow, found on the way.
///
/// A step whose gradients are not finite is skipped, and the scale halved; after many good ones it is doubled. The numbers
/// are those of PyTorch's `GradScaler`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct LossScale {
    pub scale: f32,
    /// Steps since it last changed.
    pub good: u32,
    /// Steps that were skipped in all, and those of them that were told.
    pub skipped: u64,
    pub told: u64,
}

const START: f32 = 65_536.0;
const GOOD_STEPS: u32 = 2000;
/// The smallest number of 16 bits is 2⁻²⁴: a larger scale would save none from becoming zero.
const MOST: f32 = 16_777_216.0;

impl Default for LossScale {
    fn default() -> LossScale {
        LossScale {
            scale: START,
            good: 0,
            skipped: 0,
            told: 0,
        }
    }
}

impl LossScale {
    /// What slopes are multiplied by.
    pub(super) fn of(&self, precision: Precision) -> f32 {
        match precision {
            Precision::F16 => self.scale,
            Precision::F32 | Precision::Bf16 => 1.0,
        }
    }

    /// A step is over. Says whether it can go on: a scale below 1 makes nothing larger.
    pub(super) fn pass(&mut self, skipped: bool) -> bool {
        if skipped {
            self.scale /= 2.0;
            self.good = 0;
            self.skipped += 1;
            return self.scale >= 1.0;
        }
        self.good += 1;
        if self.good >= GOOD_STEPS {
            self.scale = (self.scale * 2.0).min(MOST);
            self.good = 0;
        }
        true
    }

    /// What is to say of steps that were skipped since this was last asked.
    pub(super) fn tell(&mut self, epoch: u32) -> Option<String> {
        let untold = self.skipped - self.told;
        self.told = self.skipped;
        let steps = if untold == 1 { "step was" } else { "steps were" };
        (untold > 0).then(|| {
            format!(
                "{untold} {steps} skipped in epoch {epoch}: gradients overflowed; the loss is scaled by {} now",
                self.scale
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_halves_at_once_and_doubles_after_many_good_steps() {
        let mut scale = LossScale::default();
        assert_eq!(
            (scale.of(Precision::F16), scale.of(Precision::Bf16)),
            (65_536.0, 1.0)
        );
        assert!(scale.pass(true) && scale.pass(true));
        assert_eq!(
            scale.tell(3).unwrap(),
            "2 steps were skipped in epoch 3: gradients overflowed; the loss is scaled by 16384 now"
        );
        assert_eq!((scale.scale, scale.tell(3)), (16_384.0, None));
        (0..1999).for_each(|_| assert!(scale.pass(false)));
        assert_eq!(scale.scale, 16_384.0);
        assert!(scale.pass(false));
        assert_eq!(scale.scale, 32_768.0);
        (0..40_000).for_each(|_| assert!(scale.pass(false)));
        assert_eq!(scale.scale, MOST);
        (0..24).for_each(|_| assert!(scale.pass(true)));
        assert_eq!((scale.scale, scale.skipped), (1.0, 26));
        assert!(!scale.pass(true));
    }
}
