//! Just enough HTTP to ask a server on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Starting a training may take a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Asks once. Of a stream of events, the first piece is the answer.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Answer {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = body {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    request += "\r\n";
    request += body.unwrap_or_default();
    socket.write_all(request.as_bytes()).unwrap();

    let mut reader = BufReader::new(socket);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    };
    let first = line();
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{method} {path}: {first:?}"));
    let (mut kind, mut is_chunked) = (String::new(), false);
    loop {
        let header = line();
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-type" => kind = value.trim().into(),
            "transfer-encoding" => is_chunked = true,
            _ => {}
        }
    }
    let body = match is_chunked {
        true => chunks(&mut reader, kind == "text/event-stream"),
        false => {
            let mut body = Vec::new();
            reader.read_to_end(&mut body).unwrap();
            body
        }
    };
    Answer { status, kind, body }
}

fn chunks(reader: &mut impl BufRead, only_one: bool) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        if length == 0 {
            return body;
        }
        let begin = body.len();
        body.resize(begin + length, 0);
        reader.read_exact(&mut body[begin..]).unwrap();
        let mut end = [0; 2];
        reader.read_exact(&mut end).unwrap();
        if only_one {
            return body;
        }
    }
}
