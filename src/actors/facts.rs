//! What reaches a subject, before it is known to be new: the subject's own state decides what of it becomes an event.

use crate::app::state::{App, Secret};
use crate::events::kinds::pod::{NodeSeen, PodGone, PodSeen, SecretGone, SecretSeen};
use crate::events::kinds::tail::{MessageText, TailOf};
use crate::events::kinds::want::{WantConfirmed, WantMissing, WantRefused, WantSeen};
use crate::events::record::{Draft, Event};
use crate::ids::{HostName, Uid};

/// A pod as seen, with what was said about it in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenPod {
    pub(super) seen: PodSeen,
    /// Termination messages, redacted by whoever keeps them.
    pub(super) messages: Vec<(TailOf, String)>,
}

/// What the watch says of one uid: the newest view, and whether it is gone; both, so that an end is not lost to a deletion
/// that comes right after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Observed {
    pub(super) seen: Option<SeenPod>,
    pub(super) gone: Option<PodGone>,
}

/// One thing that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    /// A believed want.
    Want(WantSeen),
    /// A counted answer without the app.
    Missing(WantMissing),
    /// A want that could not be believed.
    Refused(WantRefused),
    /// A Secret as a list showed it.
    Secret(SecretSeen),
    /// A Secret that a list did not show.
    NoSecret(HostName),
    /// A node that a pod of the app is on.
    Node(NodeSeen),
    /// An outcome, or anything else that is an event as it stands, with the notes that go with it.
    Events(Vec<Event>),
}

impl Observed {
    /// The newest of both: a view never replaces a newer one, and a uid that is gone stays gone.
    pub(super) fn add_seen(&mut self, pod: SeenPod) {
        let newer = self.seen.as_ref().is_none_or(|known| known.seen.resource_version < pod.seen.resource_version);
        if newer && self.gone.is_none() {
            self.seen = Some(pod);
        }
    }

    /// The events that are new to this state.
    pub(super) fn events(self, app: &App) -> Vec<Draft> {
        let mut drafts = Vec::new();
        if let Some(SeenPod { seen, messages }) = self.seen
            && is_news(app, &seen)
        {
            drafts.push(Draft::input(Event::PodSeen(seen)));
            drafts.extend(messages.into_iter().map(|(of, text)| Draft::input(Event::MessageText(MessageText { of, text }))));
        }
        drafts.extend(self.gone.filter(|gone| knows(app, &gone.host, &gone.uid)).map(|gone| Draft::input(Event::PodGone(gone))));
        drafts
    }
}

impl Fact {
    /// The events that are new to this state.
    pub(super) fn events(self, app: &App) -> Vec<Draft> {
        let event = match self {
            Self::Want(want) => want_news(app, want),
            Self::Missing(missing) => Some(Event::WantMissing(missing)),
            Self::Refused(refused) => Some(Event::WantRefused(refused)),
            Self::Secret(seen) => secret_news(app, seen),
            Self::NoSecret(host) => {
                let known = app.hosts.get(&host).is_some_and(|known| known.secret != Secret::Absent);
                known.then_some(Event::SecretGone(SecretGone { host, uid: None }))
            }
            Self::Node(seen) => (app.nodes.get(&seen.node) != Some(&seen.ready)).then_some(Event::NodeSeen(seen)),
            Self::Events(events) => return events.into_iter().map(Draft::input).collect(),
        };
        event.map(Draft::input).into_iter().collect()
    }
}

/// Whether anything in the view besides its version differs from what is known.
fn is_news(app: &App, seen: &PodSeen) -> bool {
    let Some(host) = app.hosts.get(&seen.host) else { return true };
    if host.gone_uids.contains(&seen.uid) {
        return false;
    }
    let Some(known) = host.pod.as_ref().filter(|pod| pod.uid == seen.uid) else { return true };
    let Some(view) = &known.view else { return true };
    let mut same = view.clone();
    same.resource_version = seen.resource_version;
    same != *seen && seen.resource_version > known.resource_version
}

fn knows(app: &App, host: &HostName, uid: &Uid) -> bool {
    app.hosts.get(host).is_some_and(|host| !host.gone_uids.contains(uid))
}

fn secret_news(app: &App, seen: SecretSeen) -> Option<Event> {
    let known = app.hosts.get(&seen.host).map(|host| &host.secret);
    let same = matches!(known, Some(Secret::Present { uid, .. }) if *uid == seen.uid);
    (!same).then_some(Event::SecretSeen(seen))
}

/// A want is recorded when it changes, when it ends a row of absences, and, as confirmed, the first time in an incarnation.
fn want_news(app: &App, want: WantSeen) -> Option<Event> {
    let same = app.missing.in_row == 0
        && app.want.as_ref().is_some_and(|known| {
            let live_host = want.live_host.as_ref().or(known.live_host.as_ref());
            known.release == want.release
                && known.sha256 == want.sha256
                && known.host == want.host
                && known.registered == want.registered
                && known.failed == want.failed
                && known.live_host.as_ref() == live_host
        });
    match (same, app.confirmed) {
        (false, _) => Some(Event::WantSeen(want)),
        (true, false) => Some(Event::WantConfirmed(WantConfirmed { answer: want.answer })),
        (true, true) => None,
    }
}
