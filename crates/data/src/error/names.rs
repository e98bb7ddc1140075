//! Names as messages show them: a few in quotes, and the one that was most likely meant.

/// A few names in quotes, and how many more there are.
pub(crate) fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// The name that a person most likely meant: the smallest number of edits, at most a third of its length.
pub(crate) fn nearest<'a>(name: &str, columns: &'a [String]) -> Option<&'a String> {
    columns
        .iter()
        .map(|column| (edits(&name.to_lowercase(), &column.to_lowercase()), column))
        .filter(|(distance, column)| *distance <= column.chars().count().min(name.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, column)| column)
}

/// Levenshtein distance over characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_meant() {
        let columns: Vec<String> = ["price", "Target", "delayed"].map(String::from).to_vec();
        assert_eq!(nearest("target", &columns).map(String::as_str), Some("Target"));
        assert_eq!(nearest("delay", &columns), None);
        assert_eq!(nearest("delayd", &columns).map(String::as_str), Some("delayed"));
        assert_eq!(nearest("zzz", &columns), None);
    }
}
