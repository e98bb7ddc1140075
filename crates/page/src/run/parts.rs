//! Pieces that several parts of a run's page are made of.

use maud::{Markup, html};

/// Longer texts are copied from where they stand.
const COPIED: usize = 20_000;

/// A sentence begins with a capital; a name at its beginning stays as it is.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// A button that copies a text.
pub(super) fn copy(text: &str, what: &str) -> Markup {
    html! {
        @if text.len() <= COPIED {
            button.copy type="button" data-copy=(text) aria-label={ "Copy " (what) } { "Copy" }
        }
    }
}

/// A button that copies the text of an element.
pub(super) fn copy_from(id: &str, what: &str) -> Markup {
    html! { button.copy type="button" data-copy-from=(id) aria-label={ "Copy " (what) } { "Copy" } }
}

/// A part of the most, as a bar.
pub(super) fn bar(value: f64, most: f64) -> Markup {
    let share = match value / most {
        share if share.is_finite() => share.clamp(0.0, 1.0),
        _ => 0.0,
    };
    html! {
        svg.bar aria-hidden="true" { rect width=(format!("{:.1}%", share * 100.0)) height="100%" rx="2" {} }
    }
}

/// Words as a shell takes them.
pub(crate) fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%^".contains(c);
    // A first word with an equals sign would be a variable.
    let quote = |(place, word): (usize, &String)| match !word.is_empty()
        && word.chars().all(plain)
        && (place > 0 || !word.contains('='))
    {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().enumerate().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through_a_shell_as_they_were() {
        let words = [
            "python",
            "-c",
            "print('a b'); $HOME `x` \\ \"",
            "",
            "--lr=0.1",
            "~",
            "*",
            "a\nb",
            "é",
        ];
        let words: Vec<String> = words.map(String::from).to_vec();
        let line = format!("printf '%s\\0' {}", quoted(&words));
        let said = std::process::Command::new("sh")
            .args(["-c", &line])
            .output()
            .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), words);
    }
}
