//! What every request passes first: a foreign page's is refused, a foreign name's too on a loopback listener, and every answer
//! has a request id.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use crate::clock::Entropy;
use crate::ids::hex;

/// The largest body of a request, bytes: nothing here takes more than a sentence.
pub const BODY_BYTES: u64 = 64 << 10;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// Paths that are asked by address, by whatever watches over the process.
const ANY_HOST: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// How a listener is guarded.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Where request ids come from.
    pub entropy: Entropy,
    /// Whether `Host` has to be a name of this machine: on loopback, against a foreign name that resolves to it.
    pub loopback: bool,
}

/// Runs the guard around the rest.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let id = hex(&guard.entropy.bytes::<8>());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match refusal(&guard, &request) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    tracing::debug!(request = id, %method, path = crate::ids::shown(&path, 200), status = response.status().as_u16(), "http request");
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response.headers_mut().insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    response
}

fn refusal(guard: &Guard, request: &Request) -> Option<Problem> {
    let headers = request.headers();
    if is_foreign(headers) {
        return Some(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", "asked by a page of another origin"));
    }
    if guard.loopback && !ANY_HOST.contains(&request.uri().path()) && !is_local_host(headers, request.uri()) {
        let detail = "on this listener Host is localhost, 127.0.0.1 or [::1]";
        return Some(Problem::new(StatusCode::FORBIDDEN, "foreign_host", detail));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_BYTES) {
        let detail = format!("a body here is at most {BODY_BYTES} bytes");
        return Some(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail));
    }
    None
}

/// Whether a browser says that another origin's page asks. Tools send neither header.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get_all(SEC_FETCH_SITE).iter().any(|value| !matches!(value.as_bytes(), b"same-origin" | b"none"));
    let ours = headers.get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let origin = headers.get_all(ORIGIN).iter().any(|origin| {
        let origin = origin.as_bytes();
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        ours.is_empty() || host != Some(ours)
    });
    site || origin
}

fn is_local_host(headers: &HeaderMap, uri: &Uri) -> bool {
    let mut named = headers.get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
    let (first, second) = (named.next(), named.next());
    let authority = uri.authority().map(|authority| authority.as_str());
    second.is_none() && first.is_some_and(is_local_name) && authority.is_none_or(is_local_name)
}

fn is_local_name(host: &str) -> bool {
    let (name, port) = match host.strip_prefix("[::1]") {
        Some(port) => ("[::1]", port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    port_fits && (name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]"))
}
