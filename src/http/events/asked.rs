//! What a reader of the feed asks for: read, bounded, and refused in words. Pure.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::bad_cursor;
use crate::feed::cursor::parse;
use crate::feed::filter::Filter;
use crate::http::problem::Problem;
use crate::ids::{RecordId, shown};

/// The most events of a batch, and how many without a limit.
const BATCH_MOST: usize = 10_000;
const BATCH: usize = 1_000;

/// The longest a batch is waited for.
const WAIT_MOST: Duration = Duration::from_secs(60);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A form of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A line an event.
    Ndjson,
    /// Server-sent events (HTML Standard, section 9.2).
    Sse,
    /// An array.
    Batch,
}

impl Form {
    /// The form that Accept chooses: the first of its types that there is; lines when it says nothing or takes anything.
    pub(super) fn of(accept: Option<&HeaderValue>) -> Option<Self> {
        let Some(accept) = accept else { return Some(Self::Ndjson) };
        let types = accept.to_str().ok()?.split(',').map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        types.into_iter().find_map(|name| match name.as_str() {
            "text/event-stream" => Some(Self::Sse),
            "application/cloudevents-batch+json" => Some(Self::Batch),
            "application/x-ndjson" | "application/*" | "*/*" => Some(Self::Ndjson),
            _ => None,
        })
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// The last record that the reader has.
    pub(super) after: Option<RecordId>,
    /// Which records it wants.
    pub(super) filter: Filter,
    /// The most events.
    pub(super) limit: usize,
    /// Whether the stream stays open at the head.
    pub(super) follow: bool,
    /// How long a batch is waited for.
    pub(super) wait: Duration,
    /// Whether what tenants wrote is wanted.
    pub(super) tails: bool,
}

impl Asked {
    pub(super) fn read(form: Form, query: &[(String, String)], headers: &HeaderMap) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail);
        let known = ["after", "subject", "kind", "limit", "timeout", "follow", "include", "lastEventId"];
        for (at, (name, _)) in query.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(bad(format!("{} is no parameter: {}", shown(name, 40), known.join(", "))));
            }
            if query[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(bad(format!("{name} stands twice")));
            }
        }
        let value = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let number = |name: &str| {
            let read = value(name).map(|text| text.parse::<u64>().map_err(|_| bad(format!("{name} is a whole number"))));
            read.transpose()
        };
        // A browser that comes again has its newest position in the header, and its oldest in the address.
        let header = headers.get(LAST_EVENT_ID).filter(|_| form == Form::Sse).map(|id| id.to_str().unwrap_or("?"));
        let cursor = header.filter(|id| !id.is_empty()).or(value("lastEventId").filter(|_| form == Form::Sse)).or(value("after"));
        let limit = number("limit")?.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if limit == Some(0) {
            return Err(bad("limit is at least 1".to_owned()));
        }
        let follow = match value("follow") {
            None | Some("0") => false,
            Some("1") => true,
            Some(_) => return Err(bad("follow is 0 or 1".to_owned())),
        };
        let tails = match value("include") {
            None => false,
            Some("tails") => true,
            Some(_) => return Err(bad("include is tails".to_owned())),
        };
        Ok(Self {
            after: cursor.map(parse).transpose().map_err(bad_cursor)?,
            filter: Filter::parse(value("subject"), value("kind")).map_err(bad)?,
            limit: match form {
                Form::Batch => limit.unwrap_or(BATCH).min(BATCH_MOST),
                Form::Ndjson | Form::Sse => limit.unwrap_or(usize::MAX),
            },
            follow: follow || form == Form::Sse,
            wait: Duration::from_millis(number("timeout")?.unwrap_or(0)).min(WAIT_MOST),
            tails,
        })
    }
}
