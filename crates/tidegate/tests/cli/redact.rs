//! What differs between machines and moments, taken out of what a person sees.

/// Replaces what differs between machines and moments.
pub(crate) fn redact(text: &str, hidden: &[(String, &'static str)]) -> String {
    let mut text = text.to_string();
    for (shown, word) in hidden {
        text = text.replace(shown.as_str(), word);
    }
    text.lines().map(redact_line).collect::<Vec<_>>().join("\n")
}

fn redact_line(line: &str) -> String {
    // How the line is held depends on what this machine allows.
    if let Some(at) = line
        .find("enforced by cgroup")
        .or(line.find("watched by tidegate"))
    {
        return format!("{}[held]", figures(&line[..at]));
    }
    // What dominates depends on whether the program's own code counts.
    let line = match line.split_once(", most of it for ") {
        Some((needs, rest)) => format!("{needs}:{}", rest.split_once(':').map_or("", |(_, parts)| parts)),
        None => line.to_string(),
    };
    let line = line
        .replace("(cgroup peak)", "([source])")
        .replace("(ru_maxrss)", "([source])")
        .replace("(VmHWM)", "([source])")
        .replace("no OOM kills", "[OOM kills]")
        .replace("OOM kills unavailable", "[OOM kills]");
    figures(&line)
}

/// `9.89 MB` becomes `[size]`, `0.3 s` becomes `[time]`, `+2.1%` becomes `[off]`; all other numbers stay.
fn figures(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut text: Vec<String> = Vec::new();
    for word in words {
        let unit = word.trim_end_matches([',', ':', ')', ';']);
        let number = text
            .last()
            .is_some_and(|last| last.trim_start_matches('(').parse::<f64>().is_ok());
        let name = match unit {
            "B" | "KB" | "MB" | "GB" | "TB" => "[size]",
            "s" | "ms" => "[time]",
            _ => "",
        };
        if number && !name.is_empty() {
            let open = if text.pop().unwrap_or_default().starts_with('(') {
                "("
            } else {
                ""
            };
            text.push(format!("{open}{name}{}", &word[unit.len()..]));
        } else if unit.ends_with('%') && unit.starts_with(['+', '-']) {
            text.push(format!("[off]{}", &word[unit.len()..]));
        } else {
            text.push(word.to_string());
        }
    }
    let text = text.join(" ");
    // Columns are as wide as what stands in them.
    let indent = text.len() - text.trim_start().len();
    let cells = text
        .trim_start()
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty());
    format!("{}{}", &text[..indent], cells.collect::<Vec<_>>().join("  "))
}
