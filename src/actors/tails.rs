//! Reads a container's last words: redacted with the host's environment, or not kept at all.

use std::sync::Arc;

use super::perform::{Performer, Tried};
use crate::events::kinds::tail::{TailKept, TailLack, TailOf, TailText, TailUnavailable};
use crate::events::record::Event;
use crate::ids::{AppId, HostName, Subject};
use crate::kube::answer::Answer;
use crate::kube::environment::Environment;
use crate::kube::perform::TAIL_LIMIT;
use crate::kube::redact::Redactor;
use crate::kube::tail::{Tail, tail};

/// Reads a tail as events: kept with its text, or why it cannot be had.
pub(super) async fn read(performer: &Performer, subject: &Subject, of: &TailOf) -> Tried {
    let fetched = match subject {
        Subject::App(app) => fetch(performer, app, of).await,
        Subject::Session(_) => fetch_of_session(performer, of).await,
        Subject::Daemon(_) => Err(TailLack::Gone),
    };
    let events = match fetched {
        Ok(tail) => kept(of, tail),
        Err(why) => vec![Event::TailUnavailable(TailUnavailable { of: of.clone(), why })],
    };
    Tried { answer: Answer::Done, events, requests: 2, ..Tried::default() }
}

/// The Secret that is read to redact, and the lines: one limit for all of it, because a removal waits for it.
async fn fetch(performer: &Performer, app: &AppId, of: &TailOf) -> Result<Tail, TailLack> {
    tokio::time::timeout(TAIL_LIMIT, fetch_within(performer, app, of)).await.unwrap_or(Err(TailLack::TimedOut))
}

async fn fetch_within(performer: &Performer, app: &AppId, of: &TailOf) -> Result<Tail, TailLack> {
    let redactor = redactor(performer, app, &of.host).await.ok_or(TailLack::NoRedaction)?;
    let raw = performer.cluster.read_tail(&of.host, &of.uid, of.container.as_str(), false).await?;
    Ok(tail(&raw.bytes, raw.ends, &redactor))
}

/// A session is given no environment of ours: there are no values to take out.
async fn fetch_of_session(performer: &Performer, of: &TailOf) -> Result<Tail, TailLack> {
    let sessions = performer.sessions.as_ref().ok_or(TailLack::Gone)?;
    let raw = sessions.cluster.read_tail(&of.host, &of.uid, of.container.as_str()).await?;
    Ok(tail(&raw.bytes, raw.ends, &Redactor::new(&Environment::default())))
}

/// What takes the environment's values out: the environment in memory, else the host's own Secret, read for this alone.
async fn redactor(performer: &Performer, app: &AppId, host: &HostName) -> Option<Arc<Redactor>> {
    if let Some(held) = performer.environments.get(app, host) {
        return Some(held.redactor());
    }
    let environment = performer.cluster.secret_env(app, host).await.ok()??;
    Some(Arc::new(Redactor::new(&environment)))
}

fn kept(of: &TailOf, tail: Tail) -> Vec<Event> {
    let parts = u32::try_from(tail.parts.len()).unwrap_or(u32::MAX);
    let kept = TailKept { of: of.clone(), lines: tail.lines, bytes: tail.bytes, parts, cut: tail.cut };
    let texts = (0..).zip(tail.parts).map(|(part, text)| Event::TailText(TailText { of: of.clone(), part, text }));
    std::iter::once(Event::TailKept(kept)).chain(texts).collect()
}

/// A host's last lines for a person who looks at them now: read live, never in the log.
pub(super) async fn live(performer: &Performer, app: &AppId, of: &TailOf) -> Option<String> {
    fetch(performer, app, of).await.ok().map(|tail| tail.parts.concat())
}
