//! Refusals as RFC 9457 `application/problem+json`, each with a code that does not change.

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// Its stable name, for programs.
    pub code: &'static str,
    /// One sentence for people; nothing of it comes from outside unescaped.
    pub detail: String,
    /// Seconds after which the same may well succeed.
    pub retry_after_s: Option<u32>,
    /// What else is known of it, by name: extension members of the document.
    pub more: Map<String, Value>,
}

impl Problem {
    /// A refusal that asking again does not change.
    #[must_use]
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after_s: None, more: Map::new() }
    }

    /// There is no such thing (404).
    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// It is busy or not ready (503): ask again after a pause.
    #[must_use]
    pub fn busy(code: &'static str, detail: impl Into<String>, retry_after_s: u32) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(retry_after_s)
    }

    /// The same, which may well succeed after so many seconds.
    #[must_use]
    pub fn after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The same, with something else that is known of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Its document.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("refused"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Value::Object(members) = &mut document {
            members.extend(self.more.clone());
        }
        document
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.document().to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The answer to a path that there is not.
pub(super) async fn no_such_path() -> Problem {
    Problem::not_found("there is no such path")
}

/// The answer to a method that a path does not have; it has these.
pub(super) fn no_such_method(methods: &str) -> Response {
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("this path takes {methods}"));
    let allow = HeaderValue::try_from(methods).unwrap_or(HeaderValue::from_static("GET"));
    ([(ALLOW, allow)], problem).into_response()
}

/// The answer to a method that a path which is only read does not have.
pub(super) async fn only_read() -> Response {
    no_such_method("GET, HEAD")
}
