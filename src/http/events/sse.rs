//! The feed as server-sent events (HTML Standard, section 9.2).

use std::fmt::Write as _;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::json;

use super::follow::{Next, Reading};
use crate::feed::cursor::BadCursor;
use crate::feed::page::Page;

/// The stream; `pruned` is told first.
pub(super) fn stream(reading: Reading, pruned: Option<BadCursor>) -> Response {
    let first = match &pruned {
        Some(BadCursor::Pruned { requested, minimum }) => gap(&requested.to_string(), &minimum.to_string()),
        Some(_) | None => String::new(),
    };
    // Something at once: a browser then knows that it is connected.
    let first = format!(":\n\n{first}");
    let events = stream::unfold((reading, Some(first)), |(mut reading, first)| async {
        let text = match first {
            Some(first) => first,
            None => match reading.next().await {
                Next::Page(page) => in_blocks(&page),
                Next::Heartbeat => ":\n\n".to_owned(),
                Next::End => return None,
            },
        };
        Some((Ok::<_, std::io::Error>(Bytes::from(text)), (reading, None)))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// A page's events, and its position where that is beyond the last of them.
fn in_blocks(page: &Page) -> String {
    let mut text = String::new();
    for (id, event) in &page.events {
        let _ = write!(text, "id: {id}\ndata: {event}\n\n");
    }
    if page.events.last().is_none_or(|(id, _)| *id != page.position) {
        let _ = write!(text, "id: {}\n\n", page.position);
    }
    if let Some(minimum) = page.pruned {
        text += &gap(&page.position.to_string(), &minimum.to_string());
    }
    text
}

fn gap(requested: &str, minimum: &str) -> String {
    format!("event: gap\ndata: {}\n\n", json!({"requested": requested, "minimum": minimum}))
}
