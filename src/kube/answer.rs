//! The API server's answer, sorted by what to do next. Pure: the call is made elsewhere.

use std::fmt;

use serde_json::Value;

use super::convert::cut;
use crate::events::kinds::step::{Outcome, Refusal};

/// The longest pause that a server may ask for, microseconds.
pub const RETRY_AFTER_MAX_US: u64 = 60_000_000;

/// The longest text of a server's that is kept, bytes.
pub const EXPLAINED_BYTES: usize = 4096;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A new object.
    Create,
    /// A replaced object.
    Update,
    /// An object to go.
    Delete,
    /// Nothing to change.
    Read,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer {
    /// It is done.
    Done,
    /// It was so already.
    AlreadySo,
    /// What it was about is gone.
    Gone,
    /// The object is another than the one decided on.
    Conflict,
    /// The name is held by an object that is being deleted.
    NameHeld,
    /// Try again.
    RetryLater {
        /// How long the server asked to wait, microseconds, at most [`RETRY_AFTER_MAX_US`]; `None`: by our own backoff.
        after_us: Option<u64>,
        /// Whether the server asked everybody to slow down (429): the whole bucket pauses.
        slow_down: bool,
        /// Whether it may have been carried out all the same: given up now, the outcome is unknown.
        doubtful: bool,
    },
    /// It is refused, for good or until somebody changes something.
    Refused(Refusal),
    /// We have no right to (401, 403).
    Forbidden,
    /// Nobody knows: the request may still be carried out.
    #[default]
    Unknown,
}

impl Answer {
    /// Try again by our own backoff; the request was not carried out.
    pub const AGAIN: Self = Self::RetryLater { after_us: None, slow_down: false, doubtful: false };

    /// Its stable name, for the record of the call.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AlreadySo => "already_so",
            Self::Gone => "gone",
            Self::Conflict => "conflict",
            Self::NameHeld => "name_held",
            Self::RetryLater { slow_down: true, .. } => "slow_down",
            Self::RetryLater { doubtful: true, .. } => "doubtful",
            Self::RetryLater { .. } => "retry_later",
            Self::Refused(_) => "refused",
            Self::Forbidden => "forbidden",
            Self::Unknown => "unknown",
        }
    }

    /// The outcome that is recorded when this is the last word; also for a step that is given up while it would be retried.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Done => Outcome::Done,
            Self::AlreadySo => Outcome::AlreadySo,
            Self::Gone => Outcome::Gone,
            Self::Conflict => Outcome::Conflict,
            Self::NameHeld => Outcome::NameHeld,
            Self::RetryLater { doubtful: false, .. } => Outcome::Unsent,
            Self::Refused(refusal) => Outcome::Refused(*refusal),
            Self::Forbidden => Outcome::Refused(Refusal::Forbidden),
            Self::RetryLater { doubtful: true, .. } | Self::Unknown => Outcome::Unknown,
        }
    }
}

/// The API server's words about a failure, as far as they could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiStatus {
    /// Whether there was a `Status` at all.
    pub is_status: bool,
    /// Its code; 0 when it has none.
    pub code: u16,
    /// Its reason, for example `AlreadyExists`.
    pub reason: String,
    /// In words.
    pub message: String,
    /// The object's name.
    pub name: String,
    /// The resource, for example `pods`.
    pub kind: String,
    /// The causes' reasons.
    pub causes: Vec<String>,
    /// How long to wait, seconds.
    pub retry_after_s: Option<u64>,
}

impl ApiStatus {
    /// Reads a `Status`; every field is optional, because proxies answer in its place.
    #[must_use]
    pub fn of(json: &Value) -> Self {
        let text = |path: &str| json.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        let number = |path: &str| json.pointer(path).and_then(Value::as_u64);
        let causes = json.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
        Self {
            is_status: json.pointer("/kind").and_then(Value::as_str) == Some("Status"),
            code: number("/code").and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            reason: text("/reason"),
            message: text("/message"),
            name: text("/details/name"),
            kind: text("/details/kind"),
            causes: causes.filter_map(|cause| Some(cause.get("reason")?.as_str()?.to_owned())).take(16).collect(),
            retry_after_s: number("/details/retryAfterSeconds"),
        }
    }
}

/// An answer as it came. Its body may hold an environment: it is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The header `Date`: what a `Retry-After` that is a date is measured from.
    pub date: Option<String>,
    /// The body, at most the call's limit.
    pub body: Vec<u8>,
    /// Whether the body is longer than that, or was cut off.
    pub cut: bool,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {} with {} bytes", self.status, self.body.len())
    }
}

impl Reply {
    /// The `Status` in the body; an empty one when there is none.
    #[must_use]
    pub fn api_status(&self) -> ApiStatus {
        serde_json::from_slice(&self.body).map(|json| ApiStatus::of(&json)).unwrap_or_default()
    }

    /// The server's words: a `Status`'s message, else the body's text; nothing for a success.
    #[must_use]
    pub fn explained(&self) -> Option<String> {
        if (200..300).contains(&self.status) {
            return None;
        }
        let message = self.api_status().message;
        let text = if message.is_empty() { String::from_utf8_lossy(&self.body).trim().to_owned() } else { message };
        (!text.is_empty()).then(|| cut(&text, EXPLAINED_BYTES))
    }

    /// How long the server asks to wait, microseconds, at most [`RETRY_AFTER_MAX_US`]; `None` when it does not say, or says
    /// what nobody can read.
    #[must_use]
    pub fn retry_after_us(&self) -> Option<u64> {
        let from_header = self.retry_after.as_deref().and_then(|text| seconds_in(text, self.date.as_deref()));
        let seconds = from_header.or_else(|| self.api_status().retry_after_s)?;
        Some(seconds.saturating_mul(1_000_000).min(RETRY_AFTER_MAX_US))
    }
}

fn seconds_in(text: &str, date: Option<&str>) -> Option<u64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let until = http_date(text)?;
    let from = http_date(date?)?;
    Some(u64::try_from(until - from).unwrap_or(0))
}

/// Seconds since 1970 of an HTTP date; the weekday is not believed.
fn http_date(text: &str) -> Option<i64> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    parser.parse_timestamp(text.trim()).ok().map(jiff::Timestamp::as_second)
}

/// Sorts an answer to a request about the object `name`; a success is `Done` here, and its body is looked at elsewhere.
#[must_use]
pub fn sort(verb: Verb, name: &str, reply: &Reply) -> Answer {
    let status = reply.api_status();
    let retry = |slow_down, doubtful| Answer::RetryLater { after_us: reply.retry_after_us(), slow_down, doubtful };
    let writes = verb != Verb::Read;
    match reply.status {
        200..=299 => Answer::Done,
        400..=499 if denied_by_webhook(&status) => Answer::Refused(Refusal::Webhook),
        413 | 422 => Answer::Refused(Refusal::Invalid),
        // A proxy may say this for reasons of its own: only the API server's word is for good.
        400 | 405 | 406 | 411 | 414 | 415 if status.is_status => Answer::Refused(Refusal::Invalid),
        401 => Answer::Forbidden,
        403 => forbidden(&status),
        404 => missing(verb, name, &status),
        409 if is_being_deleted(&status) => Answer::NameHeld,
        409 => Answer::Conflict,
        429 => retry(true, false),
        500 if denied_by_webhook(&status) || calls_webhook(&status) => Answer::Refused(Refusal::Webhook),
        // The API server's own words: it came that far, and may have written before it failed.
        500 | 503 => retry(false, writes),
        // What stands between gave up, or the server did, and the request may still be under way.
        502 | 504 if writes => Answer::Unknown,
        502 | 504 => retry(false, false),
        _ => retry(false, writes && reply.status >= 500),
    }
}

/// A 404 is about the object only if it is the API server's own `Status` that names it: one of a proxy proves nothing.
fn missing(verb: Verb, name: &str, status: &ApiStatus) -> Answer {
    let namespace = status.kind == "namespaces";
    let about = status.is_status && status.reason == "NotFound";
    match verb {
        Verb::Create if about && namespace => Answer::Refused(Refusal::Namespace),
        Verb::Delete | Verb::Read | Verb::Update if about && (namespace || status.name == name) => Answer::Gone,
        Verb::Create | Verb::Delete | Verb::Read | Verb::Update => Answer::AGAIN,
    }
}

fn is_being_deleted(status: &ApiStatus) -> bool {
    status.message.starts_with("object is being deleted") || (status.reason == "AlreadyExists" && status.retry_after_s.is_some())
}

/// What follows these words is the webhook's own text: it is looked for before anything else is.
fn denied_by_webhook(status: &ApiStatus) -> bool {
    status.message.starts_with("admission webhook \"")
}

fn calls_webhook(status: &ApiStatus) -> bool {
    status.message.contains("failed calling webhook")
}

/// Which kind of no a 403 is: the API server has one reason for all, only the words differ.
fn forbidden(status: &ApiStatus) -> Answer {
    let has = |words: &str| status.message.contains(words);
    let refusal = if calls_webhook(status) {
        Refusal::Webhook
    } else if status.causes.iter().any(|cause| cause == "NamespaceTerminating") || has("is being terminated") {
        Refusal::Namespace
    } else if has("RuntimeClass \"") && has("not found") {
        Refusal::RuntimeClass
    } else if has("exceeded quota: ") || has("status unknown for quota: ") || has("failed quota: ") {
        Refusal::Quota
    } else if has("violates PodSecurity") || has("ValidatingAdmissionPolicy") || has("PriorityClass") || has("usage per ") {
        Refusal::Policy
    } else if has("error looking up service account") {
        // A namespace that was just made has no service account yet.
        Refusal::Namespace
    } else {
        return Answer::Forbidden;
    };
    Answer::Refused(refusal)
}
