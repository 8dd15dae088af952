//! One reader's way through the feed: page after page, and at the head until there is more. Reads when the reader takes, so that
//! a slow one slows nobody and holds a page at most.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::asked::Asked;
use super::{Feed, bad_cursor};
use crate::feed::cloudevent::Around;
use crate::feed::correlation::Correlation;
use crate::feed::cursor::{BadCursor, place};
use crate::feed::page::{Page, page};
use crate::http::log::read;
use crate::http::problem::Problem;
use crate::ids::Seq;

/// How often a stream at the head shows that it lives.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often it is looked whether there is more, while nobody says how far the log is.
const LOOK: Duration = Duration::from_secs(1);

/// A reader under way.
pub(super) struct Reading {
    feed: Feed,
    asked: Asked,
    after: Seq,
    left: usize,
    correlation: Correlation,
    /// Of the log as it was when the last page was read.
    heads: Option<watch::Receiver<Seq>>,
    at_head: bool,
    _place: OwnedSemaphorePermit,
}

/// What comes next.
pub(super) enum Next {
    /// Some of the feed.
    Page(Page),
    /// Nothing for a while.
    Heartbeat,
    /// It is over: the end of what was asked for, or the log cannot be read.
    End,
}

impl Reading {
    /// Finds the place; with it, that what was asked for aged out: it is read from what is left.
    pub(super) async fn begin(feed: Feed, asked: Asked, place_held: OwnedSemaphorePermit) -> Result<(Self, Option<BadCursor>), Problem> {
        let after = asked.after;
        let placed = read(feed.log.as_ref(), move |reader| Ok(place(reader, after))).await?;
        let (after, pruned) = match placed {
            Ok(after) => (after, None),
            Err(pruned @ BadCursor::Pruned { minimum, .. }) => (minimum.seq, Some(pruned)),
            Err(bad) => return Err(bad_cursor(bad)),
        };
        let left = asked.limit;
        let correlation = Correlation::default();
        Ok((Self { feed, asked, after, left, correlation, heads: None, at_head: false, _place: place_held }, pruned))
    }

    pub(super) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The next page, as the log is now.
    pub(super) async fn page(&mut self) -> Result<Page, Problem> {
        // Before reading: what is appended while it is read is seen by the next wait.
        self.heads = self.feed.log.heads();
        if let Some(heads) = &mut self.heads {
            heads.mark_unchanged();
        }
        let (after, left, filter, tails) = (self.after, self.left, self.asked.filter.clone(), self.asked.tails);
        let (world, mut correlation) = (Arc::clone(&self.feed.world), std::mem::take(&mut self.correlation));
        let found = read(self.feed.log.as_ref(), move |reader| {
            let page = page(reader, after, &filter, Around { world: &world, tails }, left, &mut correlation)?;
            Ok((page, correlation))
        });
        let (page, correlation) = found.await?;
        self.correlation = correlation;
        self.after = page.pruned.map_or(page.position.seq, |minimum| minimum.seq);
        self.left = self.left.saturating_sub(page.events.len());
        self.at_head = page.at_head && page.pruned.is_none();
        Ok(page)
    }

    /// Waits until there may be more, for so long at most; says whether there may be.
    pub(super) async fn more(&mut self, within: Duration) -> bool {
        match &mut self.heads {
            Some(heads) => match tokio::time::timeout(within, heads.changed()).await {
                Ok(Ok(())) => true,
                // Whoever wrote has ended: the log is opened again.
                Ok(Err(_)) => {
                    tokio::time::sleep(LOOK.min(within)).await;
                    true
                }
                Err(_) => false,
            },
            None => {
                tokio::time::sleep(LOOK.min(within)).await;
                true
            }
        }
    }

    /// What a stream sends next.
    pub(super) async fn next(&mut self) -> Next {
        if self.left == 0 {
            return Next::End;
        }
        if self.at_head {
            if !self.asked.follow {
                return Next::End;
            }
            if !self.more(HEARTBEAT).await {
                return Next::Heartbeat;
            }
        }
        match self.page().await {
            Ok(page) => Next::Page(page),
            // While the log is opened again a stream that follows waits.
            Err(problem) if self.asked.follow && problem.code == "no_log" => {
                tokio::time::sleep(LOOK).await;
                self.at_head = false;
                Next::Heartbeat
            }
            Err(problem) => {
                tracing::warn!(why = problem.detail, "a reader of the feed cannot be served on");
                Next::End
            }
        }
    }

    /// As lines. Aged out while it was read, it ends: the next request is told so.
    pub(super) fn ndjson(self) -> Response {
        let lines = stream::unfold(self, |mut reading| async {
            let bytes = match reading.next().await {
                Next::Page(page) if page.pruned.is_some() => return None,
                Next::Page(page) => page.events.into_iter().fold(String::new(), |lines, (_, event)| lines + &event + "\n"),
                // An empty line: what is between us notices that nobody is there any more.
                Next::Heartbeat => "\n".to_owned(),
                Next::End => return None,
            };
            Some((Ok::<_, std::io::Error>(Bytes::from(bytes)), reading))
        });
        ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
    }
}
