//! The sources listener: packages by digest for pods, and nothing else. Who has a digest may have the package.

use std::future::Future;
use std::io;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use bytes::BytesMut;
use futures_util::{Stream, stream};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::guard::{Guard, guard};
use super::listener::{SOURCES, serve};
use super::problem::{Problem, no_such_path, only_read};
use crate::clock::Entropy;
use crate::gateway::sources::SourceStore;
use crate::ids::PackageDigest;

/// How much of a package is in memory for one reader, bytes.
const CHUNK: usize = 64 << 10;

/// Serves the sources listener until `shutdown`.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve_sources(
    listener: TcpListener,
    store: SourceStore,
    entropy: Entropy,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve(listener, SOURCES, router(store, entropy), shutdown).await
}

/// The routes.
pub(super) fn router(store: SourceStore, entropy: Entropy) -> Router {
    Router::new()
        .route("/sources/{sha256}", get(package))
        .fallback(no_such_path)
        .method_not_allowed_fallback(only_read)
        .with_state(store)
        .layer(axum::middleware::from_fn_with_state(Guard { entropy, loopback: false }, guard))
}

async fn package(State(store): State<SourceStore>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_digest", detail);
    let Path(sha256) = path.map_err(|_| bad("the path is not UTF-8".to_owned()))?;
    let digest = PackageDigest::parse(&sha256).map_err(|e| bad(e.to_string()))?;
    let unknown = || Problem::not_found("no release that is wanted has this package");
    let (file, bytes) = store.file(digest).ok_or_else(unknown)?;
    let file = File::open(file).await.map_err(|e| {
        // It was removed between the look and the opening: nobody names it any more.
        if e.kind() == io::ErrorKind::NotFound {
            return unknown();
        }
        tracing::error!(package = digest.short(), error = %e, "a kept package cannot be opened");
        Problem::busy("disk", "the package cannot be read now", 5)
    })?;
    let mut response = Response::new(Body::from_stream(chunks(file)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    Ok(response)
}

fn chunks(file: File) -> impl Stream<Item = io::Result<bytes::Bytes>> + Send {
    stream::try_unfold(file, |mut file| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
}
