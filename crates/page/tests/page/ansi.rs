//! Lines of a log as a terminal would dress them.

use tidegate_page::ansi::{plain, spans};

/// The pieces of a line as `text[classes]`.
fn check(line: &str, expected: &str) {
    let dressed = spans(line).into_iter().map(|span| match span.style.classes() {
        classes if classes.is_empty() => span.text,
        classes => format!("{}[{classes}]", span.text),
    });
    assert_eq!(dressed.collect::<Vec<_>>().join("|"), expected, "{line:?}");
}

#[test]
fn colours_and_styles_are_kept() {
    check("plain", "plain");
    check("a\u{1b}[31mb\u{1b}[0mc", "a|b[f1]|c");
    check("\u{1b}[1;4;91mx\u{1b}[my", "x[f9 bold underline]|y");
    check("\u{1b}[3mx\u{1b}[23;2my\u{1b}[22mz", "x[italic]|y[dim]|z");
    check("\u{1b}[9mx\u{1b}[29my", "x[struck]|y");
    check("\u{1b}[38;5;208mx\u{1b}[39my", "x[f208]|y");
    check("\u{1b}[38;2;255;128;0mx", "x[f208]");
    check("\u{1b}[38:2::255:128:0mx", "x[f208]");
    check("\u{1b}[38:2:255:128:0mx", "x[f208]");
    check("\u{1b}[38:5:208;1mx", "x[f208 bold]");
    check("\u{1b}[4:3mcurly\u{1b}[4:0mnot", "curly[underline]|not");
    check("\u{1b}[58;5;9;3mx", "x[italic]");
    check("\u{9b}32mx", "x[f2]");
    // A dim colour stays one that can be read.
    check("\u{1b}[2;33mx", "x[f3]");
}

#[test]
fn backgrounds_and_what_changes_places() {
    check("\u{1b}[41mx", "x[b1]");
    check("\u{1b}[30;103mx", "x[x0 b11]");
    check("\u{1b}[7mx\u{1b}[27my", "x[xp bt]|y");
    check("\u{1b}[7;31mx", "x[xp b1]");
    check("\u{1b}[7;42mx", "x[x2 bt]");
    check("\u{1b}[7;31;42mx", "x[x2 b1]");
}

#[test]
fn other_sequences_are_dropped() {
    for line in [
        "a\u{1b}[2Kb",
        "a\u{1b}[1;5Hb",
        "a\u{1b}[?25lb",
        "a\u{1b}]0;title\u{7}b",
        "a\u{1b}]8;;https://x.example\u{1b}\\b\u{1b}]8;;\u{1b}\\",
        "a\u{1b}Pq#0;2;0;0;0\u{1b}\\b",
        "a\u{1b}(Bb",
        "a\u{1b}7b",
        "a\u{1b}=b",
        "a\u{1b}cb",
        "a\u{1b}[>4;1mb",
        "a\u{9d}0;title\u{9c}b",
    ] {
        check(line, "ab");
    }
}

#[test]
fn what_is_broken_hides_nothing_behind_it() {
    check("a\u{1b}", "a");
    check("a\u{1b}[", "a");
    check("a\u{1b}[31", "a");
    check("a\u{1b}[31ümlaut", "aümlaut");
    check("a\u{1b}]0;no end", "a0;no end");
    check("a\u{1b}\u{1b}[31mb", "a|b[f1]");
    check("\u{1b}[38;5mx", "x");
    check("\u{1b}[38;5;999mx", "x");
    check("\u{1b}[999999999999999mx", "x");
    check("\u{1b}[38;2;1;2mx", "x");
    check(&format!("\u{1b}[{}mx", "1;".repeat(1000)), "x[bold]");
}

#[test]
fn control_characters_are_shown_and_do_nothing() {
    check("a\tb", "a\tb");
    check("50%\r100%", "50%␍100%");
    check("\0\u{7}\u{8}\u{7f}", "␀␇␈␡");
    check("\u{85}x", "x");
    assert_eq!(plain("<b>\u{1b}[31m&amp;</b>"), "<b>&amp;</b>");
}

#[test]
fn true_colours_find_their_nearest() {
    for (colour, expected) in [
        ("0;0;0", "f16"),
        ("255;255;255", "f231"),
        ("255;0;0", "f196"),
        ("128;128;128", "f244"),
        ("97;135;173", "f67"),
        ("9;9;9", "f232"),
        ("300;0;0", "f196"),
    ] {
        check(&format!("\u{1b}[38;2;{colour}mx"), &format!("x[{expected}]"));
    }
}
