//! The sources listener.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get as route;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{get, raw};
use crate::clock::Entropy;
use crate::gateway::api::{Chunks, Gateway, GatewayError};
use crate::gateway::sources::SourceStore;
use crate::http::listener::{ConnectionLimits, serve};
use crate::http::sources::serve_sources;
use crate::ids::{AppId, PackageDigest};

struct Given(Vec<u8>);

impl Gateway for Given {
    fn heartbeat(&self, _: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>> {
        Box::pin(async { Ok(Bytes::new()) })
    }

    fn environment<'a>(&'a self, _: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn source<'a>(&'a self, _: &'a AppId, _: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>> {
        let package = Bytes::copy_from_slice(&self.0);
        Box::pin(async { Ok(futures_util::stream::iter([Ok(package)]).boxed()) })
    }
}

struct Served {
    address: SocketAddr,
    store: SourceStore,
    digest: PackageDigest,
    package: Vec<u8>,
    _folder: tempfile::TempDir,
}

async fn served() -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SourceStore::open(folder.path(), 1 << 20).expect("a store");
    let package: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let digest = PackageDigest::from_bytes(Sha256::digest(&package).into());
    let gateway: Arc<dyn Gateway> = Arc::new(Given(package.clone()));
    store.ensure(&gateway, &AppId::new("acme", "bot").expect("a name"), 1, digest).await.expect("kept");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve_sources(listener, store.clone(), Entropy::seeded(1), std::future::pending()));
    Served { address, store, digest, package, _folder: folder }
}

#[tokio::test]
async fn a_package_is_served_as_it_is_as_long_as_it_is_named() {
    let served = served().await;
    let path = format!("/sources/{}", served.digest);
    let answer = get(served.address, &path, "").await;
    assert_eq!((answer.status, &answer.body), (200, &served.package));
    assert!(answer.head.contains("content-type: application/gzip\r\n"), "{}", answer.head);
    assert!(answer.head.contains("content-length: 200000\r\n"), "{}", answer.head);
    let head = raw(served.address, &format!("HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
    assert!(head.body.is_empty() && head.head.contains("content-length: 200000\r\n"), "{}", head.head);
    served.store.retain(&BTreeSet::new()).expect("the disk");
    let answer = get(served.address, &path, "").await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
}

#[tokio::test]
async fn b34_what_is_no_digest_reaches_no_file() {
    let served = served().await;
    let (long, upper, other) = ("a".repeat(5_000), served.digest.to_string().to_uppercase(), "0".repeat(64));
    let double = format!("{}%00", served.digest);
    for (name, status, code) in [
        ("..", 400, "bad_digest"),
        ("%2e%2e", 400, "bad_digest"),
        ("..%2f..%2fetc%2fpasswd", 400, "bad_digest"),
        ("a%00b", 400, "bad_digest"),
        ("%ff", 400, "bad_digest"),
        (long.as_str(), 400, "bad_digest"),
        (upper.as_str(), 400, "bad_digest"),
        (double.as_str(), 400, "bad_digest"),
        (other.as_str(), 404, "not_found"),
        ("", 404, "not_found"),
        ("a/b", 404, "not_found"),
    ] {
        let answer = get(served.address, &format!("/sources/{name}"), "").await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{name}");
        assert!(!String::from_utf8_lossy(&answer.body).contains('\0'));
    }
    for path in ["/livez", "/metrics", "/v1/apps"] {
        assert_eq!(get(served.address, path, "").await.status, 404, "{path}");
    }
}

fn two_at_once() -> ConnectionLimits {
    ConnectionLimits {
        all: 10,
        of_one_address: 2,
        waiting: 10,
        waiting_of_one_address: 2,
        wait: Duration::from_secs(60),
        lifetime: Duration::from_secs(60),
        silence: Duration::from_secs(60),
    }
}

async fn limited(limits: ConnectionLimits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let router = axum::Router::new().route("/", route(|| async { "here" }));
    tokio::spawn(serve(listener, limits, router, std::future::pending()));
    address
}

async fn asked(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it connects");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    answer
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    stream.read_to_end(&mut Vec::new()).await.is_ok_and(|read| read == 0)
}

#[tokio::test]
async fn past_its_share_an_address_waits_and_is_served_when_another_of_it_ends() {
    let address = limited(two_at_once()).await;
    let first = [TcpStream::connect(address).await.expect("one"), TcpStream::connect(address).await.expect("two")];
    let waiting = [0, 1].map(|_| tokio::spawn(asked(address)));
    // Its place among those that wait is taken once both are there: the next is closed at once.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(is_closed(&mut TcpStream::connect(address).await.expect("it is accepted first")).await);
    assert!(waiting.iter().all(|asked| !asked.is_finished()), "they wait");
    drop(first);
    for asked in waiting {
        assert!(asked.await.expect("no panic").starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn nobody_waits_for_ever_for_a_share() {
    let address = limited(ConnectionLimits { wait: Duration::from_millis(100), ..two_at_once() }).await;
    let _first = [TcpStream::connect(address).await.expect("one"), TcpStream::connect(address).await.expect("two")];
    assert!(is_closed(&mut TcpStream::connect(address).await.expect("it is accepted first")).await);
}

#[tokio::test]
async fn an_address_has_only_so_many_connections_and_a_silent_one_ends() {
    let address = limited(ConnectionLimits { waiting_of_one_address: 0, silence: Duration::from_millis(50), ..two_at_once() }).await;
    let mut silent = [TcpStream::connect(address).await.expect("one"), TcpStream::connect(address).await.expect("two")];
    let mut refused = TcpStream::connect(address).await.expect("it is accepted first");
    let mut nothing = Vec::new();
    assert!(refused.read_to_end(&mut nothing).await.is_ok_and(|read| read == 0), "closed at once");
    for stream in &mut silent {
        assert!(stream.read_to_end(&mut nothing).await.is_ok_and(|read| read == 0), "closed when it was silent for too long");
    }
    let again = TcpStream::connect(address).await;
    assert!(again.is_ok(), "the address may connect again");
}
