//! The routes of the API as the sources of the page register them: what a file that describes them can forget.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Every method and path below `/api` that is registered somewhere.
pub(crate) fn registered() -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../page/src")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => routes.extend(routes_of(&fs::read_to_string(path).unwrap())),
            }
        }
    }
    routes
}

/// Those of one file: `.route("PATH", get(…).post(…))`.
fn routes_of(source: &str) -> Vec<(String, String)> {
    let registrations = source.split(".route(").skip(1).filter_map(|rest| {
        let (path, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        path.starts_with("/api").then(|| (path, arguments(rest)))
    });
    let methods = |(path, arguments): (&str, &str)| -> Vec<(String, String)> {
        let is_called = |method: &&&str| {
            let before = |at: usize| arguments[..at].chars().next_back();
            let calls = arguments
                .match_indices(&format!("{method}("))
                .map(|(at, _)| at)
                .collect::<Vec<_>>();
            calls
                .into_iter()
                .any(|at| before(at).is_some_and(|c| !c.is_alphanumeric() && c != '_'))
        };
        METHODS
            .iter()
            .filter(is_called)
            .map(|method| (method.to_string(), path.to_string()))
            .collect()
    };
    registrations.flat_map(methods).collect()
}

/// Up to the parenthesis that closes the call.
fn arguments(rest: &str) -> &str {
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    &rest[..end.unwrap_or(rest.len())]
}

#[test]
fn routes_are_found_in_sources() {
    let source = r#"
        Router::new()
            .route("/api/runs", get(list).post(act::start))
            .route("/runs/{id}", get(page))
            .route(
                "/api/runs/{id}/stop",
                post(stop),
            )
    "#;
    let found = routes_of(source);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("get", "/api/runs"),
            ("post", "/api/runs"),
            ("post", "/api/runs/{id}/stop")
        ]
    );
}
