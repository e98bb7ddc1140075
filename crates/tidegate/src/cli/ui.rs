//! `tidegate ui`

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use console::style;
use tidegate::{Result, UiOptions, ui};

use super::{open, say};

#[derive(Args)]
pub(super) struct UiArguments {
    /// The port [default: 8433, or any that is free]
    #[arg(long)]
    port: Option<u16>,
    /// The address; on any that others can reach, the page asks for a token, which is printed
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,
    /// The token that the page asks for [default: made up where others can reach it]
    #[arg(long)]
    token: Option<String>,
    /// A folder of which data may be chosen for a training; may be repeated [default: the working folder]
    #[arg(long, value_name = "FOLDER")]
    root: Vec<PathBuf>,
    /// Open it in a browser
    #[arg(long)]
    open: bool,
}

pub(super) fn run(home: &Path, arguments: UiArguments) -> Result<()> {
    let session = open(home)?;
    let ready = ui(
        &session,
        UiOptions {
            address: arguments.address,
            port: arguments.port,
            token: arguments.token,
            roots: arguments.root,
        },
    )?;
    say!("the runs of {} are shown at", session.home.display());
    say!("  {}", style(&ready.url).cyan().bold());
    if ready.has_token {
        say!("whoever has this address can see them, and start trainings; end it with Ctrl-C");
    } else {
        say!(
            "everyone on this machine can see them, and start trainings (--token asks who); end it with Ctrl-C"
        );
    }
    if arguments.open {
        browse(&ready.local_url);
    }
    drop(session);
    ready.serve()
}

/// A browser that is missing is no reason not to serve.
fn browse(url: &str) {
    let opened = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if opened.is_err() {
        eprintln!("note: there is no xdg-open to open a browser with");
    }
}
