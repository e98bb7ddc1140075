//! The verb `ui`: the page over the runs of a home, served to this machine, or with a token to others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tidegate_page::{Listening, Options, Site, listen, new_token, serve};

use crate::{Error, Result, Session};

/// What `tide` is on the keys of a telephone.
const PORT: u16 = 8433;

/// Where the page is served, and what it may start trainings on.
#[derive(Debug, Clone)]
pub struct UiOptions {
    pub address: IpAddr,
    /// Any free port where the usual one is taken, unless it is said.
    pub port: Option<u16>,
    /// On an address that others can reach there is one in any case.
    pub token: Option<String>,
    /// The working folder, if there is none.
    pub roots: Vec<PathBuf>,
}

/// A page that is about to be served.
pub struct Ui {
    site: Arc<Site>,
    listening: Listening,
    /// What a browser opens, with the token in it; and one on this machine.
    pub url: String,
    pub local_url: String,
    pub roots: Vec<PathBuf>,
    pub has_token: bool,
}

/// Opens the store and the socket.
pub fn ui(session: &Session, options: UiOptions) -> Result<Ui> {
    let token = match (options.token, options.address.is_loopback()) {
        (Some(token), _) => Some(check_token(token)?),
        (None, true) => None,
        (None, false) => Some(new_token()?),
    };
    let roots = roots(options.roots)?;
    let program = std::env::current_exe().map_err(|source| Error::Io {
        path: "tidegate".into(),
        what: "its own program cannot be found",
        source,
    })?;
    let site = Site::open(Options {
        home: session.home.clone(),
        program,
        roots: roots.clone(),
        token: token.clone(),
    })?;
    let at = |port| SocketAddr::new(options.address, port);
    let listening = match options.port {
        Some(port) => listen(at(port))?,
        None => listen(at(PORT)).or_else(|_| listen(at(0)))?,
    };
    let port = listening.address.port();
    let url = |host: &str| match &token {
        Some(token) => format!("http://{host}:{port}/?token={token}"),
        None => format!("http://{host}:{port}/"),
    };
    // Nobody can open "every address": others ask for this machine by its name.
    let (here, elsewhere) = match listening.address.ip() {
        ip if ip.is_unspecified() => (Ipv4Addr::LOCALHOST.to_string(), host_name()),
        IpAddr::V6(ip) => (format!("[{ip}]"), None),
        IpAddr::V4(ip) => (ip.to_string(), None),
    };
    let (local_url, url) = (url(&here), url(elsewhere.as_deref().unwrap_or(&here)));
    Ok(Ui {
        site,
        listening,
        url,
        local_url,
        roots,
        has_token: token.is_some(),
    })
}

impl Ui {
    /// Answers until the process is ended.
    pub fn serve(self) -> Result<()> {
        Ok(serve(self.site, self.listening)?)
    }
}

fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let name = name.trim();
    (!name.is_empty() && name.bytes().all(fits)).then(|| name.into())
}

/// It goes into addresses and cookies as it is.
fn check_token(token: String) -> Result<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    match token.len() >= 8 && token.bytes().all(fits) {
        true => Ok(token),
        false => Err(Error::Usage {
            what: "the token is too short, or has other characters than letters, digits and -_.~".into(),
            hint: "give eight characters or more, or leave it out: one is made up".into(),
        }),
    }
}

/// As they really are, so that no link leads out of them.
fn roots(asked: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let asked = if asked.is_empty() { vec![".".into()] } else { asked };
    let real = asked.into_iter().map(|root| match root.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        _ => Err(Error::Usage {
            what: format!("{}: no such folder", root.display()),
            hint: "--root names a folder of which data may be chosen".into(),
        }),
    });
    real.collect()
}
