//! What is owed to the gateway, kept in step with the subjects' states. What a report says in words is read from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::app::report::owed;
use crate::app::state::{App, HeldVerdict};
use crate::app::words::{Detail, why_failed};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::Verdict;
use crate::events::log::LogReader;
use crate::events::record::Event;
use crate::events::stored::{Body, StoredRecord};
use crate::gateway::{Beat, Outbox, Report, ReportState, WHY_CHARS};
use crate::ids::{AppId, HostName, Seq, Subject};

/// The reports; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Reports(Arc<Inner>);

struct Inner {
    outbox: Mutex<Book>,
    due: Notify,
    log: Arc<dyn LogReader>,
}

struct Book {
    outbox: Outbox,
    /// The verdict that each app's report tells.
    told: BTreeMap<AppId, (HostName, Seq, Report)>,
    /// The reports of each app's refused wants.
    refused: BTreeMap<AppId, Vec<Report>>,
}

impl Book {
    fn tell(&mut self, app: &AppId, told: Option<(HostName, Seq, Report)>) {
        let former = self.told.remove(app);
        let host = told.as_ref().map(|(host, ..)| host.clone());
        self.told.extend(told.map(|told| (app.clone(), told)));
        for host in former.into_iter().map(|(host, ..)| host).chain(host) {
            self.owe_again(app, host.as_str());
        }
    }

    fn refuse(&mut self, app: &AppId, refused: Vec<Report>) {
        let former = self.refused.remove(app).unwrap_or_default();
        let hosts: BTreeSet<String> = former.into_iter().chain(refused.iter().cloned()).map(|report| report.host).collect();
        if !refused.is_empty() {
            self.refused.insert(app.clone(), refused);
        }
        for host in hosts {
            self.owe_again(app, &host);
        }
    }

    /// Owes what this app's host is to be reported as, if anything. A refused want of the same host goes before its verdict: it is
    /// what the gateway names now.
    fn owe_again(&mut self, app: &AppId, host: &str) {
        let refused = self.refused.get(app).into_iter().flatten().find(|report| report.host == host);
        let told = self.told.get(app).map(|(_, _, report)| report).filter(|report| report.host == host);
        match refused.or(told) {
            Some(report) => self.outbox.owe(app, report.clone()),
            None => self.outbox.settle(app, host),
        }
    }
}

impl Reports {
    pub(super) fn new(outbox: Outbox, log: Arc<dyn LogReader>) -> Self {
        let book = Book { outbox, told: BTreeMap::new(), refused: BTreeMap::new() };
        Self(Arc::new(Inner { outbox: Mutex::new(book), due: Notify::new(), log }))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A subject has a new state, or the same and was listed: what it owes now.
    pub(super) fn state(&self, app: &AppId, state: &App, listed: bool) {
        let now_owed = owed(state, listed);
        let is_told = |(host, seq, _): &(HostName, Seq, Report)| now_owed.is_some_and(|(now, held)| (now, held.seq) == (host, *seq));
        if self.book().told.get(app).map_or(now_owed.is_none(), is_told) {
            return;
        }
        let told = now_owed.map(|(host, held)| (host.clone(), held.seq, self.report(app, state, host, held)));
        let is_owed = told.is_some();
        self.book().tell(app, told);
        if is_owed {
            self.0.due.notify_one();
        }
    }

    /// Wants that are refused are reported failed for as long as they are named so; empty when none is any more.
    pub(super) fn refused(&self, app: &AppId, reports: Vec<Report>) {
        if self.book().refused.get(app).map_or(reports.is_empty(), |told| *told == reports) {
            return;
        }
        let is_owed = !reports.is_empty();
        self.book().refuse(app, reports);
        if is_owed {
            self.0.due.notify_one();
        }
    }

    /// Gives lines that somebody looks at now.
    pub(super) fn lines(&self, app: &AppId, host: &HostName, lines: &str) {
        self.book().outbox.give_lines(app, host, lines);
    }

    pub(super) fn beat(&self, now_us: i64) -> Beat {
        self.book().outbox.beat(now_us)
    }

    pub(super) fn taken(&self, now_us: i64, beat: &Beat) {
        self.book().outbox.taken(now_us, beat);
    }

    /// Waits until a report becomes due that was not before.
    pub(super) async fn due(&self) {
        self.0.due.notified().await;
    }

    fn report(&self, app: &AppId, state: &App, host: &HostName, held: &HeldVerdict) -> Report {
        let (state_word, why) = match held.verdict {
            Verdict::Live => (ReportState::Live, String::new()),
            Verdict::Failed(why) => {
                let lines = self.last_lines(app, state, host, held);
                (ReportState::Failed, why_failed(why, &self.detail(app, host, held), &lines, WHY_CHARS))
            }
        };
        Report { org: app.org().to_owned(), name: app.name().to_owned(), host: host.as_str().to_owned(), state: state_word, why }
    }

    /// What the log says of the verdict's cause: the words of a refusal, or else the last end up to the verdict.
    fn detail(&self, app: &AppId, host: &HostName, held: &HeldVerdict) -> Detail {
        let mut cause = None;
        self.read(app, held.seq, |record| {
            // One that aged out says nothing any more.
            cause = Some(record.header.cause).filter(|cause| record.header.seq == held.seq && *cause != Seq::NONE);
            ControlFlow::Break(())
        });
        let (mut detail, mut refused) = (Detail::None, None);
        let Some(cause) = cause else { return detail };
        self.read(app, cause, |record| {
            let seq = record.header.seq;
            match (seq >= held.seq, record.body) {
                (true, _) => return ControlFlow::Break(()),
                (false, Body::Known(Event::StepSettled(settled))) if seq == cause => refused = Some(settled.step),
                (false, Body::Known(Event::StepExplained(explained))) if refused == Some(explained.step) => {
                    detail = Detail::Explained(explained.text);
                }
                (false, Body::Known(Event::PodEnded(ended))) if ended.host == *host && held.uid.as_ref() == Some(&ended.uid) => {
                    detail = Detail::Ended(ended);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        detail
    }

    /// Reads an app's records from one on; what is damaged is left out.
    fn read(&self, app: &AppId, from: Seq, mut visit: impl FnMut(StoredRecord) -> ControlFlow<()>) {
        let read = self.0.log.subject(&Subject::App(app.clone()), from, &mut |item| item.map_or(ControlFlow::Continue(()), &mut visit));
        if let Err(error) = read {
            tracing::warn!(%app, %error, "the cause of a failure cannot be read for a report");
        }
    }

    /// The last words of the pod that the verdict is about, as the log keeps them.
    fn last_lines(&self, app: &AppId, state: &App, host: &HostName, held: &HeldVerdict) -> String {
        let Some(tails) = state.hosts.get(host).map(|host| &host.tails) else { return String::new() };
        let of_pod = tails.iter().filter(|(of, _)| held.uid.as_ref() == Some(&of.uid));
        let last = of_pod.filter_map(|(of, tail)| Some((tail.kept?, of))).max_by_key(|(kept, of)| (of.ended, *kept));
        last.map(|(kept, of)| self.text(app, kept, of)).unwrap_or_default()
    }

    fn text(&self, app: &AppId, kept: Seq, of: &TailOf) -> String {
        let mut text = String::new();
        let mut parts_left = None;
        let read = self.0.log.subject(&Subject::App(app.clone()), kept, &mut |item| {
            match item.map(|record| record.body) {
                Ok(Body::Known(Event::TailKept(kept))) if kept.of == *of => parts_left = Some(kept.parts),
                Ok(Body::Known(Event::TailText(part))) if part.of == *of => {
                    text.push_str(&part.text);
                    parts_left = parts_left.map(|left| left.saturating_sub(1));
                }
                _ => {}
            }
            if parts_left.is_some_and(|left| left > 0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if let Err(error) = read {
            tracing::warn!(%app, %error, "the last lines cannot be read for a report");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(book: &mut Book) -> Vec<String> {
        book.outbox.beat(0).carries.into_iter().map(|(_, report)| report.why).collect()
    }

    #[test]
    fn a_refused_want_and_a_verdict_of_one_host_do_not_take_each_other_back() {
        let (app, host) = (AppId::new("acme", "bot").expect("a name"), HostName::new("bot-r1").expect("a name"));
        let report = |why: &str| Report {
            org: "acme".to_owned(),
            name: "bot".to_owned(),
            host: "bot-r1".to_owned(),
            state: ReportState::Failed,
            why: why.to_owned(),
        };
        let mut book = Book { outbox: Outbox::new("runner", 5_000), told: BTreeMap::new(), refused: BTreeMap::new() };
        book.tell(&app, Some((host.clone(), Seq(7), report("exit code 3"))));
        book.refuse(&app, vec![report("a bad digest")]);
        assert_eq!(carried(&mut book), ["a bad digest"]);
        book.refuse(&app, Vec::new());
        assert_eq!(carried(&mut book), ["exit code 3"]);
        book.refuse(&app, vec![report("a bad digest")]);
        book.tell(&app, None);
        assert_eq!(carried(&mut book), ["a bad digest"]);
        book.refuse(&app, Vec::new());
        assert!(carried(&mut book).is_empty());
    }
}
