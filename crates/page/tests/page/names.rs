//! Names in addresses: a run's name leads to that run and to no other file, whatever stands in it.

use std::fs;

use crate::site::Home;

const SECRET: &str = "nobody may read this";

/// What somebody might write in the place of a run's id.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "..%2f..%2fetc%2fpasswd",
        "..%2f..%2fsecret",
        "%2e%2e%2f%2e%2e%2fsecret",
        "..%5c..%5csecret",
        "%2fetc%2fpasswd",
        "..",
        ".",
        "%2e%2e",
        "%00",
        "a%00b",
        "..%00",
        "%ff%fe",
        "%0d%0aset-cookie:%20a=b",
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "%27%20OR%201=1--",
        "%25%5f",
        "*",
        "con",
        "runs.db",
    ]
    .map(Into::into)
    .into();
    names.push("a".repeat(60_000));
    names.push("%2e%2e%2f".repeat(5_000));
    names
}

#[tokio::test]
async fn a_name_in_an_address_leads_to_a_run_or_nowhere() {
    let home = Home::with_all_states();
    fs::write(home.folder.path().join("secret"), SECRET).unwrap();
    fs::write(home.folder.path().join("home/secret"), SECRET).unwrap();
    for name in names() {
        for path in [
            "/runs/{}",
            "/runs/{}/log",
            "/api/runs/{}",
            "/api/runs/{}/log",
            "/api/runs/{}/events",
        ] {
            let path = path.replace("{}", &name);
            let shown: String = path.chars().take(60).collect();
            let answer = home.get(&path).await;
            // Found to be no run, or no text at all; never a failure of ours, and never what it leads to.
            assert!(
                answer.status.is_client_error(),
                "{shown}: {} {}",
                answer.status,
                answer.text()
            );
            let text = answer.text();
            for unwanted in [SECRET, "root:", "SQLite format"] {
                assert!(!text.contains(unwanted), "{shown}: {text}");
            }
            let is_page = answer.header("content-type") == Some("text/html; charset=utf-8");
            assert!(!is_page || !text.contains("<script>"), "{shown}: {text}");
            assert!(answer.header("set-cookie").is_none(), "{shown}");
        }
    }
}
