//! The page on a socket, whoever is at the other end: so many connections, and so long for what is asked.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use crate::error::{Error, Result};
use crate::site::Site;

/// Threads that answer, and those that read for them.
const THREADS: usize = 2;
const READERS: usize = 8;
/// Connections at a time. Each open page keeps one; those beyond wait until another is closed.
const CONNECTIONS: usize = 256;
/// So long a connection may be silent before it has asked for something.
const SILENCE: Duration = Duration::from_secs(10);
/// After an error of the socket, such as too many open files: others are closed meanwhile.
const BREATH: Duration = Duration::from_millis(100);
/// Bytes of a token, twice as many letters.
const TOKEN_BYTES: usize = 16;

/// A socket that is open.
#[derive(Debug)]
pub struct Listening {
    socket: TcpListener,
    pub address: SocketAddr,
}

/// Opens the socket, so that its address is known before anyone is served.
pub fn listen(address: SocketAddr) -> Result<Listening> {
    let failed = |source| Error::Listen { address, source };
    let socket = TcpListener::bind(address).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listening { socket, address })
}

/// Serves until the process ends.
pub fn serve(site: Arc<Site>, listening: Listening) -> Result<()> {
    let address = listening.address;
    let failed = |source| Error::Listen { address, source };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(READERS)
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let socket = tokio::net::TcpListener::from_std(listening.socket).map_err(failed)?;
        let (service, room) = (crate::app(site), Arc::new(Semaphore::new(CONNECTIONS)));
        loop {
            let place = room.clone().acquire_owned().await.map_err(|_| Error::Bug)?;
            let Ok((stream, _)) = socket.accept().await else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let _place = place;
                // Lines of events are short and must not wait for each other.
                let _ = stream.set_nodelay(true);
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(SILENCE)
                    .serve_connection(TokioIo::new(stream), service);
                // Whoever hangs up in the middle has no use for a word about it.
                let _ = connection.await;
            });
        }
    })
}

/// A word that nobody guesses.
pub fn new_token() -> Result<String> {
    let path = PathBuf::from("/dev/urandom");
    let mut bytes = [0u8; TOKEN_BYTES];
    let read = std::fs::File::open(&path).and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|source| Error::Io {
        action: "read",
        path,
        source,
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
