//! Answers and their bodies: whole, cut off, endless, or a watch.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::{Value, json};

use super::object::Object;
use super::resources::Resource;
use super::watch::Watch;

/// The body of every answer.
pub type ApiBody = UnsyncBoxBody<Bytes, io::Error>;

/// What a request came to.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) content: Content,
    /// The object a write was about.
    pub(super) object: Option<Arc<Object>>,
    /// Fields that were dropped.
    pub(super) unknown: Vec<String>,
}

pub(super) enum Content {
    Json(Bytes),
    Text(String),
    Watch(Box<Watch>),
}

impl Answer {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self { code, content: Content::Json(body.to_string().into()), object: None, unknown: Vec::new() }
    }

    /// The object itself.
    pub(super) fn of(code: u16, object: Arc<Object>) -> Self {
        Self { code, content: Content::Json(object.json()), object: Some(object), unknown: Vec::new() }
    }

    pub(super) fn text(code: u16, body: String) -> Self {
        Self { code, content: Content::Text(body), object: None, unknown: Vec::new() }
    }

    pub(super) fn about(mut self, object: Arc<Object>) -> Self {
        self.object = Some(object);
        self
    }

    pub(super) fn success(code: u16, details: Value) -> Self {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        if details.is_null() {
            body["code"] = json!(code);
        } else {
            body["details"] = details;
        }
        Self::json(code, &body)
    }
}

/// The whole body at once.
pub(super) fn whole(bytes: impl Into<Bytes>) -> ApiBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that begins and never goes on.
pub(super) fn endless(bytes: impl Into<Bytes>) -> ApiBody {
    let first = bytes.into();
    let first = (!first.is_empty()).then(|| Ok(Frame::data(first)));
    let stream = stream::iter(first).chain(stream::pending());
    StreamBody::new(stream).boxed_unsync()
}

/// The first half of a body, then a reset connection.
pub(super) fn cut_off(bytes: impl Into<Bytes>) -> ApiBody {
    let mut bytes = bytes.into();
    bytes.truncate(bytes.len() / 2);
    let items: [io::Result<Frame<Bytes>>; 2] = [Ok(Frame::data(bytes)), Err(reset())];
    StreamBody::new(stream::iter(items)).boxed_unsync()
}

/// A connection that is reset.
pub(super) fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by the simulated API server")
}

/// Writes an object: as it is, or its metadata alone; in a list without its kind.
pub(super) fn write_object(out: &mut Vec<u8>, object: &Value, metadata_only: bool, in_list: bool) {
    // Writing to memory and of a Value cannot fail.
    let write = |value: &Value, out: &mut Vec<u8>| serde_json::to_writer(out, value).unwrap_or_default();
    if metadata_only {
        out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#);
        write(&object["metadata"], out);
        out.push(b'}');
        return;
    }
    if !in_list {
        write(object, out);
        return;
    }
    out.push(b'{');
    let fields = object.as_object().into_iter().flatten().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
    for (index, (key, value)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(&Value::from(key.as_str()), out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

/// The kind and apiVersion of a list.
pub(super) fn list_head(resource: &Resource, metadata_only: bool) -> (String, String) {
    if metadata_only {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
    } else {
        (format!("{}List", resource.kind), resource.api_version())
    }
}
