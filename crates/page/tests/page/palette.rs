//! The colours of logs: every class that a line can have is in the sheet, as the rule below makes it, and can be read.

use std::fmt::Write;

/// The sheet, and where the colours begin in it.
const SHEET: &str = include_str!("../../assets/log.css");
const BEGIN: &str = "/* The palette of 256, made by tests/page/palette.rs. */\n";

/// What a line may stand on, in light and in dark: paper, and those of rows that are marked.
const LIGHT: [&str; 4] = ["#ffffff", "#d9eef3", "#fbe6e6", "#fbf0d4"];
const DARK: [&str; 4] = ["#101c22", "#12343f", "#3a1c20", "#352a10"];
/// What the guidelines for the web ask of text.
const CONTRAST: f64 = 4.5;

/// The first sixteen, which every terminal chooses for itself.
const NAMED: [&str; 16] = [
    "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5", "#666666",
    "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

type Colour = [f64; 3];

fn parse(text: &str) -> Colour {
    [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&text[at..at + 2], 16).unwrap()))
}

fn hex(colour: Colour) -> String {
    let [red, green, blue] = colour.map(|part| part.round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn colour(index: usize) -> Colour {
    const LEVELS: [f64; 6] = [0.0, 95.0, 135.0, 175.0, 215.0, 255.0];
    match index {
        0..16 => parse(NAMED[index]),
        16..232 => [36, 6, 1].map(|step| LEVELS[(index - 16) / step % 6]),
        _ => [8.0 + 10.0 * (index - 232) as f64; 3],
    }
}

/// Of light, as the guidelines weigh it.
fn luminance(colour: Colour) -> f64 {
    let [red, green, blue] = colour.map(|part| match part / 255.0 {
        part if part <= 0.04045 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colour, moved towards black or white as far as it takes to be read on all of these.
fn legible(colour: Colour, papers: [&str; 4], end: f64) -> String {
    (0..=100)
        .map(|step| colour.map(|part| part + (end - part) * f64::from(step) / 100.0))
        .map(|moved| parse(&hex(moved)))
        .find(|moved| {
            papers
                .iter()
                .all(|paper| contrast(*moved, parse(paper)) >= CONTRAST)
        })
        .map(hex)
        .unwrap()
}

fn palette() -> String {
    let mut css = String::new();
    for i in 0..256 {
        let (light, dark) = (legible(colour(i), LIGHT, 0.0), legible(colour(i), DARK, 255.0));
        writeln!(css, ".f{i}{{color:light-dark({light},{dark})}}").unwrap();
    }
    for i in 0..256 {
        let (black, white) = (contrast(colour(i), [0.0; 3]), contrast(colour(i), [255.0; 3]));
        let text = if black > white { "#000" } else { "#fff" };
        writeln!(css, ".b{i}{{background:{};color:{text}}}", hex(colour(i))).unwrap();
    }
    for i in 0..256 {
        writeln!(css, ".x{i}{{color:{}}}", hex(colour(i))).unwrap();
    }
    css
}

#[test]
fn every_colour_is_in_the_sheet_as_it_should_be() {
    let made = palette();
    let (_, there) = SHEET.split_once(BEGIN).expect("the sheet has a palette");
    assert!(there == made, "the palette should end the sheet and be:\n{made}");
}
