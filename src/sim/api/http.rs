//! The same API server over HTTP on a loopback port, for programs that want a URL.

use std::net::{Ipv4Addr, SocketAddr};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::task::JoinHandle;

use super::{ClusterApi, DAEMON};

/// A listener on loopback; it ends when this is dropped.
#[derive(Debug)]
pub struct Served {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    /// Serves a router on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(router: axum::Router) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "simulated listener ended");
            }
        });
        Ok(Self { address, task })
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl ClusterApi {
    /// Serves this API server over plain HTTP on a free loopback port. A broken connection is shown as a 502.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn serve(&self) -> std::io::Result<Served> {
        let api = self.clone();
        let answer = move |request: Request| {
            let api = api.clone();
            async move { over_http(&api, request).await }
        };
        Served::start(axum::Router::new().fallback(answer)).await
    }
}

async fn over_http(api: &ClusterApi, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    match api.exchange(DAEMON, Request::from_parts(parts, body.to_bytes())).await {
        Ok(response) => response.map(Body::new),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
