//! The Lease that says which log may act: read, and written over the version that was read. Decides nothing.
//!
//! It is a guard and no lock: who holds it is told by its annotations, which name a log and how far it is (DESIGN.md, "Being many").

use std::time::Duration;

use ::kube::Client;
use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Request, send};
use crate::events::log::Acknowledged;
use crate::ids::{LogId, Seq, hex, shown};

const LOG: &str = "wharfinger.dev/log";
const HEAD: &str = "wharfinger.dev/head";
const ROOT: &str = "wharfinger.dev/root";
const PROCESS: &str = "wharfinger.dev/process";

/// The longest text of a Lease that is taken in, bytes.
const TEXT: usize = 253;

/// A Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its version: what is written over another is refused.
    pub resource_version: String,
    /// Whose data folder.
    pub holder: String,
    /// Which process of it.
    pub process: String,
    /// The log that acts; `None` when it names none that can be read.
    pub log: Option<LogId>,
    /// The last record of that log that it knows of.
    pub head: Seq,
}

/// What is written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose data folder: the same over restarts.
    pub holder: String,
    /// Which process of it.
    pub process: String,
    /// The log, its last record and its tree.
    pub log: Acknowledged,
    /// How long it holds without being renewed, seconds.
    pub duration_s: u32,
    /// Now, microseconds since 1970.
    pub now_us: i64,
}

/// Why a Lease was not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else wrote, made or removed it since it was read: read it again.
    #[error("it has changed")]
    Changed,
    /// The API server refuses: nothing helps but the right to it.
    #[error("the API server refuses it: {0}")]
    Refused(String),
    /// The API server cannot be reached or is in trouble: try again.
    #[error("the API server does not answer: {0}")]
    Away(String),
}

/// One Lease.
#[derive(Clone)]
pub struct LeaseApi {
    client: Client,
    collection: String,
    name: String,
    limit: Duration,
}

impl LeaseApi {
    /// The Lease of that name. `limit` bounds a request.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, limit: Duration) -> Self {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        Self { client, collection, name: name.to_owned(), limit }
    }

    /// Reads it; `None` when it is not there.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn read(&self) -> Result<Option<Held>, LeaseError> {
        let reply = self.send(Request::get(format!("{}/{}", self.collection, self.name))).await?;
        if reply.status == 404 {
            return Ok(None);
        }
        held(&reply).map(Some)
    }

    /// Writes it over the version `over`, or makes it when that is `None`.
    ///
    /// # Errors
    /// See [`LeaseError`]; after [`LeaseError::Away`] nobody knows whether it was written.
    pub async fn write(&self, over: Option<&str>, claim: &Claim) -> Result<Held, LeaseError> {
        let body = object(&self.name, over, claim).to_string().into_bytes();
        let (method, path) = match over {
            Some(_) => (http::Method::PUT, format!("{}/{}", self.collection, self.name)),
            None => (http::Method::POST, self.collection.clone()),
        };
        held(&self.send(Request { method, body, ..Request::get(path) }).await?)
    }

    async fn send(&self, request: Request) -> Result<Reply, LeaseError> {
        send(&self.client, request, self.limit).await.map_err(|lack| LeaseError::Away(lack.to_string()))
    }
}

fn object(name: &str, over: Option<&str>, claim: &Claim) -> Value {
    let Acknowledged { log, head, tree } = claim.log;
    let renewed = jiff::Timestamp::from_microsecond(claim.now_us).unwrap_or_default();
    let mut object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "annotations": {
            LOG: log.to_string(), HEAD: head.to_string(), ROOT: hex(&tree.root), PROCESS: claim.process,
        }},
        "spec": {"holderIdentity": claim.holder, "leaseDurationSeconds": claim.duration_s, "renewTime": format!("{renewed:.6}")},
    });
    if let Some(version) = over {
        object["metadata"]["resourceVersion"] = json!(version);
    }
    object
}

fn held(reply: &Reply) -> Result<Held, LeaseError> {
    match reply.status {
        200..=299 => {}
        404 | 409 => return Err(LeaseError::Changed),
        429 | 500.. => return Err(LeaseError::Away(format!("HTTP {}", reply.status))),
        status => return Err(LeaseError::Refused(format!("HTTP {status}"))),
    }
    let object: Value = serde_json::from_slice(&reply.body).map_err(|_| LeaseError::Away("no JSON".to_owned()))?;
    let text = |value: &Value| shown(value.as_str().unwrap_or_default(), TEXT);
    let annotation = |key: &str| text(&object["metadata"]["annotations"][key]);
    Ok(Held {
        resource_version: text(&object["metadata"]["resourceVersion"]),
        holder: text(&object["spec"]["holderIdentity"]),
        process: annotation(PROCESS),
        log: LogId::parse(&annotation(LOG)),
        head: Seq(annotation(HEAD).parse().unwrap_or(u64::MAX)),
    })
}
