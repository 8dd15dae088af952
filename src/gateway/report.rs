//! What the next heartbeat tells the gateway. Pure: told the time, sends nothing.
//!
//! A report is owed until whoever owes it takes it back; a 2xx only spaces its being sent again. What does not fit into a
//! body goes with the next beat, longest unsent first, so that a thousand failures starve nobody.

use std::collections::BTreeMap;

use super::protocol::{BODY_BYTES, Heartbeat, LINES_BYTES, LogLines, Report, WHY_CHARS};
use crate::ids::{AppId, HostName};

/// Beats between two sendings of a report that the gateway has taken.
const RESEND_BEATS: u64 = 3;

/// The most bytes of lines that wait; more are not taken, because they are asked for again.
const WAITING_LINES_BYTES: usize = 4 * BODY_BYTES;

/// Whose report: an app and a host as the gateway writes it.
pub type ReportKey = (AppId, String);

#[derive(Debug, Clone)]
struct Owed {
    report: Report,
    /// When it last went with a beat that got a 2xx; written by [`Outbox::taken`].
    taken_us: Option<i64>,
}

/// What is owed to the gateway.
#[derive(Debug, Clone)]
pub struct Outbox {
    runner: String,
    resend_us: i64,
    reports: BTreeMap<ReportKey, Owed>,
    lines: BTreeMap<(AppId, HostName), String>,
}

/// One heartbeat, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The request's JSON; at most [`BODY_BYTES`].
    pub body: Vec<u8>,
    /// Which reports it carries, and what each says: for [`Outbox::taken`].
    pub carries: Vec<(ReportKey, Report)>,
    /// Something that is due did not fit: the next beat is due at once.
    pub more: bool,
}

impl Outbox {
    /// `runner` is this runner's name, `beat_ms` the setting `gateway.beat_ms`.
    #[must_use]
    pub fn new(runner: &str, beat_ms: u64) -> Self {
        let resend_us = i64::try_from(beat_ms.saturating_mul(1_000 * RESEND_BEATS)).unwrap_or(i64::MAX);
        Self { runner: runner.to_owned(), resend_us, reports: BTreeMap::new(), lines: BTreeMap::new() }
    }

    /// Owes a report, in place of what that host was reported before. The same again changes nothing.
    pub fn owe(&mut self, app: &AppId, mut report: Report) {
        report.why = last_chars(&report.why, WHY_CHARS).to_owned();
        let key = (app.clone(), report.host.clone());
        if self.reports.get(&key).is_none_or(|owed| owed.report != report) {
            self.reports.insert(key, Owed { report, taken_us: None });
        }
    }

    /// Owes no report of that host any more: a good answer shows it, or it is void.
    pub fn settle(&mut self, app: &AppId, host: &str) {
        self.reports.remove(&(app.clone(), host.to_owned()));
    }

    /// Takes back every report of the app that `keep` does not want kept.
    pub fn retain(&mut self, app: &AppId, keep: impl Fn(&Report) -> bool) {
        self.reports.retain(|(of, _), owed| of != app || keep(&owed.report));
    }

    /// Gives a host's last lines with the next beat; best effort, never kept when that beat is lost.
    pub fn give_lines(&mut self, app: &AppId, host: &HostName, lines: &str) {
        let lines = last_bytes(lines, LINES_BYTES);
        let waiting: usize = self.lines.values().map(String::len).sum();
        if waiting + lines.len() <= WAITING_LINES_BYTES {
            self.lines.insert((app.clone(), host.clone()), lines.to_owned());
        }
    }

    /// How many reports are owed.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.reports.len()
    }

    /// When a report is due next, log time: at or before now means that a beat is due at once.
    #[must_use]
    pub fn due_us(&self) -> Option<i64> {
        self.reports.values().map(|owed| self.due_of(owed)).min()
    }

    fn due_of(&self, owed: &Owed) -> i64 {
        owed.taken_us.map_or(i64::MIN, |taken| taken.saturating_add(self.resend_us))
    }

    /// The beat to send now. Lines leave the outbox with it, reports stay owed.
    pub fn beat(&mut self, now_us: i64) -> Beat {
        let mut due: Vec<(&ReportKey, &Owed)> = self.reports.iter().filter(|(_, owed)| self.due_of(owed) <= now_us).collect();
        due.sort_by_key(|(_, owed)| owed.taken_us);
        let mut beat = Heartbeat { runner: self.runner.clone(), reports: Vec::new(), logs: Vec::new() };
        let mut room = BODY_BYTES.saturating_sub(json_len(&beat));
        let (mut carries, mut more) = (Vec::new(), false);
        for (key, owed) in due {
            if take_room(&mut room, json_len(&owed.report)) {
                carries.push((key.clone(), owed.report.clone()));
                beat.reports.push(owed.report.clone());
            } else {
                more = true;
            }
        }
        let mut left = BTreeMap::new();
        for ((app, host), lines) in std::mem::take(&mut self.lines) {
            let logs = LogLines { org: app.org().to_owned(), name: app.name().to_owned(), host: host.as_str().to_owned(), lines };
            if take_room(&mut room, json_len(&logs)) {
                beat.logs.push(logs);
            } else {
                left.insert((app, host), logs.lines);
            }
        }
        more |= !left.is_empty();
        self.lines = left;
        let body = serde_json::to_vec(&beat).expect("a heartbeat has string keys alone");
        Beat { body, carries, more }
    }

    /// A beat got its 2xx at `now_us`: what it carried, and has not changed since, is sent again only after a pause.
    pub fn taken(&mut self, now_us: i64, beat: &Beat) {
        for (key, report) in &beat.carries {
            if let Some(owed) = self.reports.get_mut(key).filter(|owed| owed.report == *report) {
                owed.taken_us = Some(now_us);
            }
        }
    }
}

/// Takes the room that an item and its comma need, when there is as much.
fn take_room(room: &mut usize, len: usize) -> bool {
    match room.checked_sub(len + 1) {
        Some(rest) => {
            *room = rest;
            true
        }
        None => false,
    }
}

fn json_len(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX - 1, |bytes| bytes.len())
}

/// The last `max` characters.
fn last_chars(text: &str, max: usize) -> &str {
    match text.char_indices().rev().nth(max.saturating_sub(1)) {
        Some((at, _)) => &text[at..],
        None => text,
    }
}

/// The end of it, at most `max` bytes, beginning with a whole line where there is one.
fn last_bytes(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut at = text.len() - max;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    let cut = &text[at..];
    match cut.find('\n') {
        Some(end) if end + 1 < cut.len() => &cut[end + 1..],
        _ => cut,
    }
}
