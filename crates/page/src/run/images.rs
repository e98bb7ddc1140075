//! Contact sheets of images: made by the program when somebody asks for them, and kept with the run.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path as Named, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tidegate_memory::counted;
use tidegate_runs::{Run, RunDir};

use super::files::{self, Found};
use super::job;
use super::parts::copy;
use crate::answers::{Asked, Question};
use crate::error::{Error, Result};
use crate::site::Site;

/// So long the form that asks for a sheet waits for it; the page tells what takes longer.
const PATIENCE: Duration = Duration::from_secs(8);
/// A sheet of 48 images in their largest size stays below it.
const LARGEST: u64 = 32 << 20;
/// Files that are named below a sheet.
const NAMED: usize = 60;

/// One of the two sheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sheet {
    Samples,
    Mistakes,
}

impl Sheet {
    pub(super) const ALL: [Sheet; 2] = [Sheet::Samples, Sheet::Mistakes];

    fn name(self) -> &'static str {
        match self {
            Sheet::Samples => "samples",
            Sheet::Mistakes => "mistakes",
        }
    }

    fn question(self) -> Question {
        match self {
            Sheet::Samples => Question::Samples,
            Sheet::Mistakes => Question::Mistakes,
        }
    }

    fn path(self, dir: &RunDir) -> std::path::PathBuf {
        match self {
            Sheet::Samples => dir.samples(),
            Sheet::Mistakes => dir.mistakes(),
        }
    }
}

/// What is known of a sheet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    sheet: Sheet,
    /// Of the picture, where it is there.
    size: Option<(u32, u32)>,
    about: About,
    /// It is being made.
    asking: bool,
    trouble: Option<String>,
}

/// As `tidegate preview --json` says it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct About {
    images: u64,
    versions: u64,
    files: Vec<String>,
}

impl About {
    fn of(value: &Value) -> About {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }
}

/// What there is of a sheet.
pub(super) fn look(dir: &RunDir, sheet: Sheet) -> Seen {
    Seen {
        sheet,
        size: size(dir, sheet),
        about: About::default(),
        asking: false,
        trouble: None,
    }
}

/// The size of a picture by its first bytes.
fn size(dir: &RunDir, sheet: Sheet) -> Option<(u32, u32)> {
    let mut head = [0u8; 24];
    File::open(sheet.path(dir)).ok()?.read_exact(&mut head).ok()?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_png = head.starts_with(b"\x89PNG\r\n\x1a\n") && &head[12..16] == b"IHDR";
    let (width, height) = (word(16), word(20));
    (is_png && (1..100_000).contains(&width) && (1..100_000).contains(&height)).then_some((width, height))
}

/// Whether it learned from images, or is about to: only then can there be sheets.
pub(super) fn are_there(job: &str, dir: &RunDir) -> bool {
    let design: Found<Design> = files::json(&dir.model().join("network.json"));
    if let Found::Yes(design) = design {
        return design.images.is_some();
    }
    let keys = job::keys(job);
    let of_images = |(key, _): &(String, String)| key.starts_with("images.") || key.starts_with("augment.");
    // A folder may as well hold tables, whose columns are encoded.
    let of_table = dir.encoding().exists()
        || job::value(&keys, "model.kind").is_some_and(|kind| ["linear", "boost"].contains(&kind));
    let folder = || job::value(&keys, "data.path").is_some_and(|path| Path::new(path).is_dir());
    keys.iter().any(of_images) || (!of_table && folder())
}

/// Of `network.json`, whether there is a form of images.
#[derive(Deserialize)]
struct Design {
    #[serde(default)]
    images: Option<IgnoredAny>,
}

pub(super) fn section(run: &Run, sheets: &[Seen]) -> Markup {
    if sheets.is_empty() {
        return html! {};
    }
    html! {
        section.card {
            h2 { "Images" }
            div.beside { @for seen in sheets { div { (one(run, seen)) } } }
        }
    }
}

fn one(run: &Run, seen: &Seen) -> Markup {
    let (title, about) = match seen.sheet {
        Sheet::Samples => (
            "What the network sees",
            match seen.about.versions {
                0 | 1 => "Samples as the network sees them, with their classes.".to_string(),
                n => format!(
                    "In each row a sample as it is and {} augmented.",
                    counted(n - 1, "time")
                ),
            },
        ),
        Sheet::Mistakes => (
            "The most confident mistakes",
            "What it is, what it was taken for, and how sure the network was; the surest first.".into(),
        ),
    };
    let name = seen.sheet.name();
    let address = format!("/runs/{}/{name}", run.id);
    html! {
        h3 { (title) }
        @if let Some((width, height)) = seen.size {
            p.about { (about) }
            figure.sheet {
                a href={ (address) ".png" } { img src={ (address) ".png" } width=(width) height=(height) alt={ (title) ", " (counted(seen.about.images, "image")) } loading="lazy"; }
            }
            @if !seen.about.files.is_empty() {
                details { summary { "Their files (" (seen.about.files.len()) ")" }
                    ol.files { @for file in seen.about.files.iter().take(NAMED) { li { code { (file) } " " (copy(file, "the path")) } } }
                }
            }
        } @else if seen.asking {
            p.asking data-ask={ "/api/runs/" (run.id) "/" (name) } { "The sheet is being made from the images. " a href={ "/runs/" (run.id) "#images" } { "Look again" } }
        } @else {
            @if let Some(trouble) = &seen.trouble { p.problem-note { "It could not be made: " (trouble) ". The images have to be where they were." } }
            form method="post" action=(address) {
                button type="submit" { @if seen.sheet == Sheet::Samples { "Show samples" } @else { "Show the mistakes" } }
                span.about { " The images are read again for it, within the line of the job." }
            }
        }
    }
}

pub(super) async fn samples(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Result<Response> {
    picture(&site, id, Sheet::Samples).await
}

pub(super) async fn mistakes(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Result<Response> {
    picture(&site, id, Sheet::Mistakes).await
}

/// What has been made.
async fn picture(site: &Arc<Site>, id: String, sheet: Sheet) -> Result<Response> {
    let read = site.read(move |store| {
        let run = store.get(&id)?;
        let mut bytes = Vec::new();
        let file = File::open(sheet.path(&store.run_dir(&run.id))).map_err(|_| not_made())?;
        file.take(LARGEST)
            .read_to_end(&mut bytes)
            .map_err(|_| not_made())?;
        Ok(bytes)
    });
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        // It may be made again.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, Bytes::from(read.await?)).into_response())
}

fn not_made() -> Error {
    Error::NotFound {
        what: "this sheet was not made".into(),
        hint: "ask for it on the page of the run".into(),
    }
}

pub(super) async fn make_samples(
    State(site): State<Arc<Site>>,
    Named(id): Named<String>,
) -> Result<Redirect> {
    make(&site, id, Sheet::Samples).await
}

pub(super) async fn make_mistakes(
    State(site): State<Arc<Site>>,
    Named(id): Named<String>,
) -> Result<Redirect> {
    make(&site, id, Sheet::Mistakes).await
}

/// Has it made, and goes back to the page, which tells what came of it.
async fn make(site: &Arc<Site>, id: String, sheet: Sheet) -> Result<Redirect> {
    let read = site.read(move |store| {
        let run = store.get(&id)?;
        let dir = store.run_dir(&run.id);
        if size(&dir, sheet).is_none() {
            // What was told of a picture that is gone is of no use; mostly there is nothing to remove.
            let _ = std::fs::remove_file(sheet.path(&dir).with_extension("json"));
        }
        Ok(run)
    });
    let run = read.await?;
    // The page tells what goes wrong with it.
    let _ = site.answer(&run.id, sheet.question(), PATIENCE).await;
    Ok(Redirect::to(&format!("/runs/{}#images", run.id)))
}

/// What a script asks for that waits for a sheet: what is on it. It is not made for that.
pub(super) async fn about(site: &Arc<Site>, id: String, sheet: Sheet, patience: Duration) -> Result<Value> {
    let run = site.read(move |store| Ok(store.get(&id)?)).await?;
    let (kept, asked) = (
        site.kept_answer(&run.id, sheet.question()).await?,
        site.asked(&run.id, sheet.question()),
    );
    if kept.is_none() && asked == Asked::No {
        return Err(not_made());
    }
    super::waited(site.answer(&run.id, sheet.question(), patience).await?)
}

impl Site {
    /// What was told of a sheet, or what became of asking for it.
    pub(super) async fn complete(self: &Arc<Site>, id: &str, seen: &mut Seen) -> Result<()> {
        let question = seen.sheet.question();
        if seen.size.is_some() {
            let kept = self.kept_answer(id, question).await?;
            seen.about = kept.map(|about| About::of(&about)).unwrap_or_default();
            return Ok(());
        }
        match self.asked(id, question) {
            Asked::No => {}
            Asked::Now => seen.asking = true,
            Asked::Refused(why) => seen.trouble = Some(why),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_tells_its_size_and_anything_else_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = tidegate_runs::Store::open(folder.path()).unwrap();
        let dir = store.run_dir("abc");
        std::fs::create_dir_all(dir.path()).unwrap();
        assert_eq!(size(&dir, Sheet::Samples), None);
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0".to_vec();
        std::fs::write(dir.samples(), &png).unwrap();
        assert_eq!(size(&dir, Sheet::Samples), Some((640, 480)));
        png[0] = 0;
        std::fs::write(dir.samples(), &png).unwrap();
        assert_eq!(size(&dir, Sheet::Samples), None);
        std::fs::write(dir.samples(), &png[..10]).unwrap();
        assert_eq!(size(&dir, Sheet::Samples), None);
    }
}
