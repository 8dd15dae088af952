//! The feed as one array, waited for (CloudEvents JSON format, section 4).

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};

use super::bad_cursor;
use super::follow::Reading;
use crate::clock;
use crate::feed::cursor::BadCursor;
use crate::http::problem::Problem;

/// A batch ends with the page that brings it to this, bytes.
const BYTES: usize = 4 << 20;

/// The position after the batch: also of one that a filter left empty.
const POSITION: HeaderName = HeaderName::from_static("wharf-position");

pub(super) async fn answer(mut reading: Reading) -> Result<Response, Problem> {
    let (end, mut events, mut bytes) = (clock::now() + reading.asked().wait, Vec::new(), 0);
    let position = loop {
        let page = reading.page().await?;
        if let Some(minimum) = page.pruned {
            return Err(bad_cursor(BadCursor::Pruned { requested: page.position, minimum }));
        }
        bytes += page.events.iter().map(|(_, event)| event.len()).sum::<usize>();
        events.extend(page.events.into_iter().map(|(_, event)| event));
        if bytes >= BYTES || events.len() >= reading.asked().limit {
            break page.position;
        }
        if page.at_head {
            let left = end.saturating_duration_since(clock::now());
            if !events.is_empty() || left.is_zero() || !reading.more(left).await {
                break page.position;
            }
        }
    };
    let mut response = ([(CONTENT_TYPE, "application/cloudevents-batch+json")], format!("[{}]", events.join(","))).into_response();
    if let Ok(position) = HeaderValue::try_from(position.to_string()) {
        response.headers_mut().insert(POSITION, position);
    }
    Ok(response)
}
