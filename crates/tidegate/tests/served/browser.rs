//! The stories of the page in a real Chromium (`crates/page/tests/browser`), and a look for what keeps people out.
//!
//! Needs node, the packages that `.ci/setup` puts into the target folder, and Chromium; is skipped with a word where one is
//! missing. Screenshots of every page are left in `page-shots` of the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::scene::Scene;

/// What Chromium is called, from the most to the least likely.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

#[test]
fn stories_are_told_in_a_real_browser() {
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(missing) => {
            eprintln!("skipped: {missing}; .ci/setup installs it");
            return;
        }
    };
    let scene = Scene::new();
    let told = json!({
        "url": format!("http://{}", scene.address),
        "program": env!("CARGO_BIN_EXE_tidegate"),
        "home": scene.home(),
        "work": scene.work(),
        "runs": scene.runs,
        "chromium": tools.chromium,
        "modules": tools.modules,
        "shots": target().join("page-shots"),
    });
    let path = scene.work().join("../scene.json");
    std::fs::write(&path, told.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../page/tests/browser/tell.mjs");
    let output = Command::new("node").arg(script).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    println!("{said}");
}

struct Tools {
    chromium: PathBuf,
    modules: PathBuf,
}

impl Tools {
    fn find() -> Result<Tools, String> {
        let runs = |program: &&&str| {
            Command::new(program)
                .arg("--version")
                .output()
                .is_ok_and(|told| told.status.success())
        };
        if !runs(&&"node") {
            return Err("there is no node".into());
        }
        let modules = target().join("page-modules");
        if !modules.join("node_modules/playwright-core").is_dir() {
            return Err(format!("there is no playwright-core in {}", modules.display()));
        }
        let chromium = CHROMIUM.iter().find(runs).ok_or("there is no Chromium")?;
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = std::env::split_paths(&paths).map(|folder| folder.join(chromium));
        let chromium = paths.find(|path| path.is_file()).ok_or("there is no Chromium")?;
        Ok(Tools { chromium, modules })
    }
}

/// Where everything is built.
fn target() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().unwrap_or(scratch).to_path_buf()
}
