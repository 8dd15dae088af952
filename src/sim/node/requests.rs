//! The requests a node sends to an API server, real or embedded. Knows no pod's life.

use std::time::Duration;

use ::kube::Client;
use ::kube::client::Body;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Value, json};

/// A request's time limit.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// What became of a request, by what the node does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The object is gone, or another of its name is there.
    #[error("gone: {0}")]
    Gone(String),
    /// Another was faster: look again.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Anything else: try again.
    #[error("failed: {0}")]
    Retry(String),
}

/// Where the node's requests go.
#[derive(Clone)]
pub struct Requests {
    client: Client,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    /// Through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client itself, for watches.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one request and reads the whole answer; a good one is not parsed.
    ///
    /// # Errors
    /// Sorted by what to do next.
    pub async fn send(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Result<Bytes, Failed> {
        let retry = |error: &dyn std::fmt::Display| Failed::Retry(error.to_string());
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", media_type).body(Body::from(bytes));
        let request = request.map_err(|error| retry(&error))?;
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| retry(&error))?;
            let status = response.status();
            let bytes = response.into_body().collect_bytes().await.map_err(|error| retry(&error))?;
            Ok((status, bytes))
        };
        let (status, bytes) = tokio::time::timeout(REQUEST_LIMIT, exchange).await.map_err(|error| retry(&error))??;
        let why = || {
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            format!("{method} {path}: {status} {}", body["message"].as_str().unwrap_or_default())
        };
        match status {
            StatusCode::NOT_FOUND => Err(Failed::Gone(why())),
            StatusCode::CONFLICT => Err(Failed::Conflict(why())),
            status if status.is_success() => Ok(bytes),
            _ => Err(Failed::Retry(why())),
        }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn get(&self, path: &str) -> Result<Value, Failed> {
        let bytes = self.send("GET", path, "application/json", &Value::Null).await?;
        serde_json::from_slice(&bytes).map_err(|error| Failed::Retry(format!("GET {path}: {error}")))
    }

    /// Creates an object.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Bytes, Failed> {
        self.send("POST", path, "application/json", body).await
    }

    /// Merges a patch strategically.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn patch(&self, path: &str, body: &Value) -> Result<Bytes, Failed> {
        self.send("PATCH", path, "application/strategic-merge-patch+json", body).await
    }

    /// Deletes this very object with this grace, seconds.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn delete(&self, path: &str, uid: &Value, grace_s: u32) -> Result<Bytes, Failed> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_s, "preconditions": {"uid": uid}});
        self.send("DELETE", path, "application/json", &body).await
    }
}
