//! What a reader of the feed asks for: read, bounded, and refused in words. Pure.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bad_cursor;
use crate::feed::cursor::parse;
use crate::feed::filter::Filter;
use crate::http::problem::Problem;
use crate::ids::RecordId;

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

/// The query of a reader, as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct EventsQuery {
    /// The `id` of the last event that the reader has; without it, from the first record that is left.
    #[schemars(regex(pattern = "^[0-9a-f]{32}:[0-9]{1,19}$"))]
    after: Option<String>,
    /// Records of this subject alone.
    subject: Option<String>,
    /// Records of these kinds alone, with commas between them.
    kind: Option<String>,
    /// The most events.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Milliseconds that a batch is waited for; at most 60,000 count.
    timeout: Option<u64>,
    /// 1: lines go on with what is appended.
    #[schemars(range(min = 0, max = 1))]
    follow: Option<u8>,
    /// `tails`: with what tenants wrote, for who has the role.
    #[schemars(regex(pattern = "^tails$"))]
    pub(super) include: Option<String>,
    /// As `after`, of server-sent events; the header `Last-Event-ID` goes before it.
    #[serde(rename = "lastEventId")]
    #[schemars(regex(pattern = "^[0-9a-f]{32}:[0-9]{1,19}$"))]
    last_event_id: Option<String>,
}

impl Asked {
    pub(super) fn read(form: Form, query: &EventsQuery, tails: bool, headers: &HeaderMap) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail);
        // A browser that comes again has its newest position in the header, and its oldest in the address.
        let header = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?")).filter(|id| !id.is_empty());
        let of_browser = header.or(query.last_event_id.as_deref()).filter(|_| form == Form::Sse);
        let cursor = of_browser.or(query.after.as_deref());
        let limit = query.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if limit == Some(0) {
            return Err(bad("limit is at least 1".to_owned()));
        }
        if query.follow.is_some_and(|follow| follow > 1) {
            return Err(bad("follow is 0 or 1".to_owned()));
        }
        Ok(Self {
            after: cursor.map(parse).transpose().map_err(bad_cursor)?,
            filter: Filter::parse(query.subject.as_deref(), query.kind.as_deref()).map_err(bad)?,
            limit: match form {
                Form::Batch => limit.unwrap_or(BATCH).min(BATCH_MOST),
                Form::Ndjson | Form::Sse => limit.unwrap_or(usize::MAX),
            },
            follow: query.follow == Some(1) || form == Form::Sse,
            wait: Duration::from_millis(query.timeout.unwrap_or(0)).min(WAIT_MOST),
            tails,
        })
    }
}
