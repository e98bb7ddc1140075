//! Losses that are no longer numbers, as training loops print them.

use crate::why::{Grade, LogLine};

/// What a line says of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Finite,
    /// Not a number or infinite.
    NotFinite(Grade),
}

/// `loss: nan`, `'loss': nan`, `loss=tensor(nan, device='cuda:0')`, `train-logloss:nan`, `Loss is nan, stopping training`.
/// The values of other columns do not matter, nor does a loss of infinity that stands for «none so far».
pub(super) fn loss(text: &str) -> Option<Loss> {
    let lower = text.to_ascii_lowercase();
    let mut found = None;
    for (at, _) in lower.match_indices("loss") {
        let after = &lower[at + 4..];
        // `losses`, `lossless`, `loss_scale`: other words.
        let other = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if other && !after.starts_with("es") {
            continue;
        }
        if let Some(words) = after.strip_prefix(" is ") {
            let bad = ["nan", "inf", "-inf", "nan/inf"]
                .iter()
                .any(|bad| starts_with_word(words, bad));
            if bad && words.contains("stop") {
                return Some(Loss::NotFinite(Grade::Proven));
            }
            if bad {
                found = Some(Loss::NotFinite(Grade::Likely));
            }
            continue;
        }
        let after = after.strip_prefix("es").unwrap_or(after);
        let value = after.trim_start_matches([' ', ':', '=', '\'', '"', '\t', '[', '(']);
        let between = &after[..after.len() - value.len()];
        // Wider gaps are columns of a table.
        if !between.contains([':', '=']) && between != " " {
            continue;
        }
        let value = value.trim_start_matches("tensor(").trim_start_matches('+');
        let infinite = ["inf", "-inf", "infinity", "-infinity"]
            .iter()
            .any(|bad| starts_with_word(value, bad));
        if starts_with_word(value, "nan") || (infinite && !is_best(&lower[..at])) {
            found = Some(Loss::NotFinite(Grade::Likely));
        } else if found.is_none()
            && value
                .trim_start_matches('-')
                .starts_with(|c: char| c.is_ascii_digit())
        {
            found = Some(Loss::Finite);
        }
    }
    found
}

/// The lines of a log that tell a loss as a training does, number or not.
pub(in crate::why) fn reports_of_loss(log: &[LogLine]) -> usize {
    log.iter().filter(|line| loss(&line.text).is_some()).count()
}

/// `best_loss`, `min loss`, `lowest val_loss`: what they are before there is any is infinite.
fn is_best(before: &str) -> bool {
    let mut words = before.rsplit([' ', ',', '|']);
    let near: [&str; 3] = [(); 3].map(|()| words.next().unwrap_or(""));
    ["best", "min", "lowest", "prev", "init"]
        .iter()
        .any(|word| near.iter().any(|near| near.contains(word)))
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::Grade::{Likely, Proven};
    use super::*;

    #[test]
    fn losses_are_read() {
        for (text, expected) in [
            (
                "Epoch 3/10 - loss: nan - accuracy: 0.0980",
                Some(Loss::NotFinite(Likely)),
            ),
            (
                "{'loss': nan, 'learning_rate': 4.5e-05, 'epoch': 0.3}",
                Some(Loss::NotFinite(Likely)),
            ),
            ("step 120 loss=nan lr=0.001", Some(Loss::NotFinite(Likely))),
            (
                "loss: tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)",
                Some(Loss::NotFinite(Likely)),
            ),
            (
                "[12]\ttrain-logloss:nan\teval-logloss:nan",
                Some(Loss::NotFinite(Likely)),
            ),
            ("Train Loss: 0.5, Val Loss: nan", Some(Loss::NotFinite(Likely))),
            ("iter 7 loss inf", Some(Loss::NotFinite(Likely))),
            ("Loss is nan, stopping training", Some(Loss::NotFinite(Proven))),
            ("Loss is inf, stopping training", Some(Loss::NotFinite(Proven))),
            ("Epoch 3/10 - loss: 0.3145 - accuracy: 0.9", Some(Loss::Finite)),
            ("loss -1.25", Some(Loss::Finite)),
            (
                "Epoch 00001: val_loss improved from inf to 0.43210, saving model to best.h5",
                None,
            ),
            ("best_loss=inf", None),
            ("min val loss: inf", None),
            ("loss_scale: inf", None),
            ("nan_loss: 0.5", Some(Loss::Finite)),
            ("0.12  NaN  0.5   NaN", None),
            ("loss    NaN    NaN", None),
            ("lossless nan", None),
            ("age        714 non-null  NaN", None),
            ("Use --loss nan_safe_mse to avoid it", None),
            ("", None),
        ] {
            assert_eq!(loss(text), expected, "{text}");
        }
    }
}
