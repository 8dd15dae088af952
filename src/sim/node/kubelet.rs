//! The nodes' own endpoint, over HTTPS on loopback: an API server that is not embedded reads the containers' logs here, as it
//! does from a kubelet. Whoever connects is answered; only output of scripts is behind it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::Listener;
use http::StatusCode;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::log_book::{LogBook, without_former};
use crate::sim::api::logs::{LogRead, cut};

/// Time for a handshake: the next connection waits for it.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// After an accept that failed for want of something.
const BREATH: Duration = Duration::from_millis(100);

/// What the endpoint shows to the API server, which must trust its issuer for the address 127.0.0.1.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, DER.
    pub certificate: Vec<u8>,
    /// Its key, PKCS#8 in DER.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The endpoint; it ends when this is dropped.
#[derive(Debug)]
pub struct Kubelet {
    address: SocketAddr,
    logs: Arc<LogBook>,
    task: JoinHandle<()>,
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelet {
    /// Serves on a free loopback port. Must be called inside a runtime.
    ///
    /// # Errors
    /// When no port can be had, or certificate and key are none or do not fit.
    pub async fn start(identity: &Identity) -> io::Result<Self> {
        let acceptor = acceptor(identity)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let logs = Arc::new(LogBook::default());
        let path = "/containerLogs/{namespace}/{pod}/{container}";
        let router = Router::new().route(path, get(container_logs)).with_state(logs.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(Tls { listener, acceptor }, router).await {
                tracing::error!(%error, "simulated kubelet ended");
            }
        });
        Ok(Self { address, logs, task })
    }

    /// Where it listens: what Node objects say of themselves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it serves.
    #[must_use]
    pub fn logs(&self) -> Arc<LogBook> {
        self.logs.clone()
    }
}

fn acceptor(identity: &Identity) -> io::Result<TlsAcceptor> {
    let certificate = CertificateDer::from(identity.certificate.clone());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Connections whose handshake is done.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "no connection accepted");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            match tokio::time::timeout(HANDSHAKE, self.acceptor.accept(stream)).await {
                Ok(Ok(stream)) => return (stream, address),
                Ok(Err(error)) => tracing::debug!(%error, "handshake failed"),
                Err(error) => tracing::debug!(%error, "handshake took too long"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// What the API server asks with; the rest of a log's options is not played.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Asked {
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
    previous: bool,
}

async fn container_logs(
    State(logs): State<Arc<LogBook>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    Query(asked): Query<Asked>,
) -> Response {
    let containers = logs.of_name(&namespace, &pod);
    let Some(read) = containers.get(&container).cloned() else {
        let why = if containers.is_empty() {
            format!("pod {pod:?} does not exist")
        } else {
            format!("container {container:?} not found in pod {pod:?}")
        };
        return (StatusCode::NOT_FOUND, why).into_response();
    };
    let read = if asked.previous { without_former(read) } else { read };
    if let Some(why) = read.refusal(&pod, &container) {
        return (StatusCode::BAD_REQUEST, why).into_response();
    }
    match read {
        LogRead::Text(text) => cut(&text, asked.tail_lines, asked.limit_bytes).into_response(),
        LogRead::Waiting(_) | LogRead::NoPrevious | LogRead::Unreachable => no_answer(),
    }
}

/// A body that fails before its first byte: the connection ends without an answer.
fn no_answer() -> Response {
    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "the node does not answer");
    Response::new(Body::from_stream(futures_util::stream::iter([Err::<bytes::Bytes, _>(cut)])))
}
