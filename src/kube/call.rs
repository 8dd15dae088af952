//! One request is one attempt: a time limit, our own headers, and the answer as it came. Sorting it is not done here.

use std::fmt;
use std::time::Duration;

use ::kube::Client;
use ::kube::client::Body;
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};

use super::answer::Reply;
use crate::ids::RecordId;

/// The content type of everything that is sent.
const JSON: &str = "application/json";

/// Asks for an object's metadata alone.
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The same for a list.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A request as it is to be sent, once. Its body may hold an environment: it is never shown.
#[derive(Clone)]
pub struct Request {
    /// The HTTP method.
    pub method: http::Method,
    /// Path and query.
    pub path: String,
    /// What is accepted in return.
    pub accept: &'static str,
    /// The JSON that is sent, or nothing.
    pub body: Vec<u8>,
    /// The name under which the API server's audit log will have it.
    pub audit_id: Option<[u8; 16]>,
    /// The longest body that is read, bytes.
    pub limit: usize,
}

/// The longest body of one object that is read, bytes: a Secret of 1 MiB in base64, with its metadata.
pub const OBJECT_BYTES: usize = 4 << 20;

/// The longest page of a list that is read, bytes: 500 objects of 64 KiB.
pub const PAGE_BYTES: usize = 32 << 20;

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} with {} bytes", self.method, self.path, self.body.len())
    }
}

impl Request {
    /// A read of one object.
    #[must_use]
    pub fn get(path: String) -> Self {
        Self { method: http::Method::GET, path, accept: JSON, body: Vec::new(), audit_id: None, limit: OBJECT_BYTES }
    }

    /// A read of an object's or a list's metadata.
    #[must_use]
    pub fn get_as(path: String, accept: &'static str) -> Self {
        Self { accept, ..Self::get(path) }
    }

    /// A write.
    #[must_use]
    pub fn write(method: http::Method, path: String, body: &serde_json::Value, audit_id: [u8; 16]) -> Self {
        Self { method, body: body.to_string().into_bytes(), audit_id: Some(audit_id), ..Self::get(path) }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The request never left: it certainly is not carried out.
    #[error("not sent: {0}")]
    NotSent(String),
    /// It may have arrived, and may still be carried out.
    #[error("no answer: {0}")]
    Lost(String),
}

/// Sends a request once and reads the answer.
///
/// # Errors
/// When there is no answer within the limit, or none at all.
pub async fn send(client: &Client, request: Request, limit: Duration) -> Result<Reply, NoAnswer> {
    let bytes = request.limit;
    let request = built(request)?;
    let exchange = async {
        let response = client.send(request).await.map_err(|error| lost(&error))?;
        let (parts, sent) = response.into_parts();
        let mut reply = reply_of(&parts);
        (reply.body, reply.cut) = body(sent, bytes).await;
        Ok(reply)
    };
    match tokio::time::timeout(limit, exchange).await {
        Ok(answered) => answered,
        Err(_) => Err(NoAnswer::Lost(format!("within {} ms", limit.as_millis()))),
    }
}

/// Builds the HTTP request of a [`Request`].
///
/// # Errors
/// When the path is none: then nothing was sent.
pub(super) fn built(request: Request) -> Result<http::Request<Body>, NoAnswer> {
    let mut builder = http::Request::builder().method(request.method).uri(request.path).header(http::header::ACCEPT, request.accept);
    if !request.body.is_empty() {
        builder = builder.header(http::header::CONTENT_TYPE, JSON);
    }
    if let Some(id) = request.audit_id {
        builder = builder.header("audit-id", uuid(&id));
    }
    builder.body(Body::from(request.body)).map_err(|error| NoAnswer::NotSent(error.to_string()))
}

/// An answer as far as its head says.
pub(super) fn reply_of(parts: &http::response::Parts) -> Reply {
    let header = |name: http::HeaderName| Some(parts.headers.get(name)?.to_str().ok()?.chars().take(100).collect());
    Reply {
        status: parts.status.as_u16(),
        retry_after: header(http::header::RETRY_AFTER),
        date: header(http::header::DATE),
        ..Reply::default()
    }
}

/// Reads a body up to a limit; the second value says whether there was more, or it broke off.
pub(super) async fn body(mut body: Body, limit: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (bytes, true) };
        let Ok(data) = frame.into_data() else { continue };
        let room = limit - bytes.len();
        if data.len() > room {
            bytes.extend_from_slice(&data[..room]);
            return (bytes, true);
        }
        bytes.extend_from_slice(&data);
    }
    (bytes, false)
}

/// Whether a failed request certainly never left: there was no credential, or nobody to send it to.
pub(super) fn lost(error: &::kube::Error) -> NoAnswer {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let text = chain(error);
    if matches!(error, ::kube::Error::Auth(_)) {
        return NoAnswer::NotSent(text);
    }
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if matches!(kind, Some(ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable)) {
            return NoAnswer::NotSent(text);
        }
        next = cause.source();
    }
    NoAnswer::Lost(text)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    super::convert::cut(&text, 512)
}

/// The `Audit-ID` of one attempt of a step: a UUIDv8 of SHA-256(log id, seq, attempt), so that every entry of the API server's
/// audit log joins its step though the outcome was never recorded (DESIGN.md, "Whose object is it").
#[must_use]
pub fn audit_id(step: RecordId, attempt: u32) -> [u8; 16] {
    let digest =
        Sha256::new().chain_update(step.log.0).chain_update(step.seq.0.to_be_bytes()).chain_update(attempt.to_be_bytes()).finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id[6] = (id[6] & 0x0f) | 0x80;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}

/// An id as a UUID is written.
#[must_use]
pub fn uuid(id: &[u8; 16]) -> String {
    let hex = crate::ids::hex(id);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A value as a query takes it.
#[must_use]
pub fn escaped(value: &str) -> String {
    use std::fmt::Write as _;
    value.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
