//! The API against `openapi.json`: every route is in the file, every answer is as the file says, and every status that the
//! file names was answered.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http::{Answer, ask};
use crate::questions;
use crate::routes::registered;
use crate::scene::Scene;
use crate::schema::{complaints, resolve};

fn file() -> Value {
    serde_json::from_str(include_str!("../../../page/assets/openapi.json")).unwrap()
}

/// The operations of the file: method, path, what is said of it.
pub(crate) fn operations(file: &Value) -> Vec<(String, String, &Value)> {
    let paths = file["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods
            .filter(|(method, _)| *method != "parameters")
            .map(|(method, said)| (method.clone(), path.clone(), said))
    });
    all.collect()
}

#[test]
fn every_route_of_the_api_is_described() {
    let file = file();
    let described: BTreeSet<(String, String)> = operations(&file)
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    let registered = registered();
    assert!(registered.len() > 20, "{registered:?}");
    let missing: Vec<_> = registered.difference(&described).collect();
    let left_over: Vec<_> = described.difference(&registered).collect();
    assert!(
        missing.is_empty() && left_over.is_empty(),
        "openapi.json does not describe {missing:?}, and describes {left_over:?} that nobody answers"
    );
}

#[test]
fn the_description_is_whole() {
    let file = file();
    assert_eq!(file["openapi"], "3.1.0");
    assert_eq!(file["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut names = BTreeSet::new();
    for (method, path, said) in operations(&file) {
        let what = format!("{method} {path}");
        assert!(
            said["summary"].as_str().is_some_and(|text| !text.is_empty()),
            "{what}"
        );
        assert!(
            names.insert(said["operationId"].as_str().unwrap().to_string()),
            "{what}: its name is taken"
        );
        let in_path = parameters(&file, &path, said)
            .into_iter()
            .filter(|one| one["in"] == "path");
        let in_path: Vec<String> = in_path
            .map(|one| format!("{{{}}}", one["name"].as_str().unwrap()))
            .collect();
        let asked: Vec<&str> = path.split('/').filter(|part| part.starts_with('{')).collect();
        assert_eq!(in_path, asked, "{what}: the parameters of its path");
    }
    // What is referred to is there, and what is there is referred to.
    let text = file.to_string();
    for kind in ["schemas", "responses", "parameters"] {
        for name in file["components"][kind].as_object().unwrap().keys() {
            let reference = format!("\"#/components/{kind}/{name}\"");
            assert!(text.contains(&reference), "nothing refers to {reference}");
        }
    }
}

fn parameters<'a>(file: &'a Value, path: &str, said: &'a Value) -> Vec<&'a Value> {
    let of_path = file["paths"][path]["parameters"].as_array().into_iter().flatten();
    let all = of_path.chain(said["parameters"].as_array().into_iter().flatten());
    all.map(|one| match one.get("$ref") {
        Some(reference) => resolve(file, reference),
        None => one,
    })
    .collect()
}

/// Asks, and holds what is answered against the file.
pub(crate) struct Asking<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) file: Value,
    answered: BTreeSet<(String, String, String)>,
    complaints: Vec<String>,
}

impl Asking<'_> {
    pub(crate) fn get(&mut self, route: &str, of: &[(&str, &str)], query: &str, status: u16) -> Answer {
        self.ask("get", route, of, query, None, status)
    }

    pub(crate) fn post(
        &mut self,
        route: &str,
        of: &[(&str, &str)],
        body: Option<Value>,
        status: u16,
    ) -> Answer {
        self.ask("post", route, of, "", body, status)
    }

    pub(crate) fn ask(
        &mut self,
        method: &str,
        route: &str,
        of: &[(&str, &str)],
        query: &str,
        body: Option<Value>,
        status: u16,
    ) -> Answer {
        let mut path = of.iter().fold(route.to_string(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), value)
        });
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
        let text = body.map(|body| body.to_string());
        let headers: &[(&str, &str)] = match &text {
            Some(_) => &[("Content-Type", "application/json")],
            None => &[],
        };
        let answer = ask(
            self.scene.address,
            &method.to_uppercase(),
            &path,
            headers,
            text.as_deref(),
        );
        self.hold(method, route, &path, &answer, status);
        answer
    }

    pub(crate) fn hold(&mut self, method: &str, route: &str, path: &str, answer: &Answer, status: u16) {
        let what = format!("{method} {path}");
        if answer.status != status {
            let told = format!(
                "{what}: {} in the place of {status}: {}",
                answer.status,
                answer.text()
            );
            return self.complaints.push(told);
        }
        let code = status.to_string();
        let response = &self.file["paths"][route][method]["responses"][&code];
        let response = match response.get("$ref") {
            Some(reference) => resolve(&self.file, reference),
            None => response,
        };
        let kind = answer.kind.split(';').next().unwrap_or_default();
        let Some(content) = response["content"].get(kind) else {
            return self
                .complaints
                .push(format!("{what}: {status} as {kind:?} is not described"));
        };
        if kind == "application/json" {
            let found = complaints(&self.file, &content["schema"], &answer.json());
            self.complaints.extend(
                found
                    .iter()
                    .map(|complaint| format!("{what}: {status}: {complaint}")),
            );
        }
        self.answered.insert((method.into(), route.into(), code));
    }
}

#[test]
fn the_api_answers_as_it_is_described() {
    let scene = Scene::new();
    let mut asking = Asking {
        scene: &scene,
        file: file(),
        answered: BTreeSet::new(),
        complaints: Vec::new(),
    };
    questions::ask_all(&mut asking);

    let Asking {
        file,
        answered,
        mut complaints,
        ..
    } = asking;
    for (method, path, said) in operations(&file) {
        for status in said["responses"].as_object().unwrap().keys() {
            let key = (method.clone(), path.clone(), status.clone());
            if !answered.contains(&key) {
                complaints.push(format!("{method} {path}: {status} was never answered"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}
