//! Tests of the listeners, over real connections on loopback.

mod access;
pub(crate) mod control;
mod erase;
mod log;
mod openapi;
mod proofs;
pub(crate) mod sessions;
mod sources;
mod why;

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer as it came.
pub(in crate::http) struct Answer {
    pub(in crate::http) status: u16,
    pub(in crate::http) head: String,
    pub(in crate::http) body: Vec<u8>,
}

impl Answer {
    pub(in crate::http) fn code(&self) -> String {
        assert!(self.head.contains("content-type: application/problem+json"), "{}", self.head);
        let problem: serde_json::Value = serde_json::from_slice(&self.body).expect("JSON");
        assert_eq!(problem["status"], self.status);
        problem["code"].as_str().expect("a code").to_owned()
    }
}

/// Sends a request line and headers as they are, and reads to the end.
pub(in crate::http) async fn raw(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("read");
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    assert!(head.contains("x-request-id: "), "every answer has a request id: {head}");
    Answer { status, head, body: all[end..].to_vec() }
}

/// `GET path` with further headers, each ending in CRLF.
pub(in crate::http) async fn get(address: SocketAddr, path: &str, headers: &str) -> Answer {
    raw(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")).await
}
