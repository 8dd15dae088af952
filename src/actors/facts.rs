//! What reaches a subject, before it is known to be new: the subject's own state decides what of it becomes an event.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::environments::Words;
use super::kept;
use crate::app::state::{App, Host, Secret};
use crate::events::kinds::pod::{GoneHow, NodeSeen, PodGone, PodSeen, SecretGone, SecretSeen};
use crate::events::kinds::step::Step;
use crate::events::kinds::want::{WantConfirmed, WantMissing, WantRefused, WantSeen};
use crate::events::record::{Draft, Event};
use crate::ids::{HostName, Seq, Uid};

/// A pod as seen, with what was said about it in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenPod {
    pub(super) seen: PodSeen,
    /// Termination messages, when they can be redacted.
    pub(super) words: Option<Words>,
}

/// What the watch says of one uid: the newest view, and whether it is gone; both, so that an end is not lost to a deletion
/// that comes right after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    pub(super) seen: Option<SeenPod>,
    pub(super) gone: Option<PodGone>,
}

/// One thing that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A believed want.
    Want(WantSeen),
    /// The same for an app that waits for an answer, whatever it says.
    Answer(WantSeen),
    /// A counted answer without the app.
    Missing(WantMissing),
    /// A want that could not be believed.
    Refused(WantRefused),
    /// What a complete list of the pods showed of the app.
    List(Shown),
    /// What a complete list of the Secrets showed of it.
    Secrets(ShownSecrets),
    /// A node that a pod of the app is on.
    Node(NodeSeen),
    /// An outcome, or anything else that is an event as it stands, with the notes that go with it.
    Events(Vec<Event>),
}

/// What a complete list of the pods showed of one app. They are observations besides; what it does not show is found out when it is
/// taken in, against a state that knows everything that came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The list's version: what is newer was not to be in it.
    pub(super) version: u64,
    pub(super) pods: BTreeSet<Uid>,
    /// Names of pods that are there and cannot be read, of all apps.
    pub(super) odd: Arc<BTreeSet<String>>,
}

/// What a complete list of the Secrets showed of one app: listed on its own, and compared with the state on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSecrets {
    /// This list's own version: it says nothing of a Secret that is newer.
    pub(super) version: u64,
    pub(super) secrets: Vec<SecretSeen>,
    /// Whether one that is there would have been in it whoever made it; if not, one that is not may be there all the same.
    pub(super) complete: bool,
}

/// The last complete list, as it bears on pods that only a write of ours showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastList {
    /// Its version.
    pub(super) version: u64,
    /// Names of pods that are there and cannot be read, of all apps.
    pub(super) odd: Arc<BTreeSet<String>>,
}

impl kept::Lists<App> for Option<LastList> {
    fn absent(&self, app: &App, seen: &BTreeSet<Uid>) -> Vec<Draft> {
        let Some(LastList { version, odd }) = self else { return Vec::new() };
        let pods = app.hosts.iter().filter_map(|(name, host)| Some((name, host.pod.as_ref()?)));
        let unseen = pods.filter(|(_, pod)| !seen.contains(&pod.uid));
        let absent = unseen.filter(|(name, pod)| pod.resource_version <= *version && !odd.contains(name.as_str()));
        absent.map(|(name, pod)| Draft::input(absence(name, &pod.uid, *version))).collect()
    }
}

/// The pods that a list or the watch showed.
pub(super) fn seen_pods(app: &App) -> BTreeSet<Uid> {
    app.hosts.values().filter_map(|host| host.pod.as_ref()).filter(|pod| pod.view.is_some()).map(|pod| pod.uid.clone()).collect()
}

/// A complete list of that version does not show the pod.
fn absence(host: &HostName, uid: &Uid, version: u64) -> Event {
    Event::PodGone(PodGone { host: host.clone(), uid: uid.clone(), resource_version: version, how: GoneHow::Absent })
}

impl Observed {
    /// It was seen.
    pub(super) fn seen(pod: SeenPod) -> Self {
        Self { seen: Some(pod), gone: None }
    }

    /// The newest of both: a view never replaces a newer one, and a uid that is gone stays gone.
    fn add_seen(&mut self, pod: SeenPod) {
        let newer = self.seen.as_ref().is_none_or(|known| known.seen.resource_version < pod.seen.resource_version);
        if newer && self.gone.is_none() {
            self.seen = Some(pod);
        }
    }
}

impl kept::Observed<App> for Observed {
    fn then(&mut self, later: Self) {
        if let Some(pod) = later.seen {
            self.add_seen(pod);
        }
        self.gone = later.gone.or_else(|| self.gone.take());
    }

    fn news(&self, app: &App) -> Vec<Draft> {
        let mut drafts = Vec::new();
        if let Some(SeenPod { seen, words }) = &self.seen
            && is_news(app, seen)
        {
            drafts.push(Draft::input(Event::PodSeen(seen.clone())));
            let texts = words.iter().flat_map(Words::redacted);
            drafts.extend(texts.map(|text| Draft::input(Event::MessageText(text))));
        }
        let gone = self.gone.iter().filter(|gone| knows(app, &gone.host, &gone.uid) || !drafts.is_empty());
        let gone: Vec<Draft> = gone.map(|gone| Draft::input(Event::PodGone(gone.clone()))).collect();
        drafts.extend(gone);
        drafts
    }
}

impl kept::Fact<App> for Fact {
    fn of_events(events: Vec<Event>) -> Self {
        Self::Events(events)
    }

    fn of_node(seen: NodeSeen) -> Self {
        Self::Node(seen)
    }

    fn events(&self) -> Option<&[Event]> {
        match self {
            Self::Events(events) => Some(events),
            Self::Want(_) | Self::Answer(_) | Self::Missing(_) | Self::Refused(_) | Self::List(_) | Self::Secrets(_) | Self::Node(_) => {
                None
            }
        }
    }

    fn news(&self, app: &App, _place: Seq) -> Vec<Draft> {
        let event = match self {
            Self::Want(want) => want_news(app, want),
            Self::Answer(want) => want_news(app, want).or(Some(Event::WantConfirmed(WantConfirmed { answer: want.answer }))),
            Self::Missing(missing) => Some(Event::WantMissing(missing.clone())),
            Self::Refused(refused) => Some(Event::WantRefused(refused.clone())),
            Self::List(shown) => return shown.events(app).into_iter().map(Draft::input).collect(),
            Self::Secrets(shown) => return shown.events(app).into_iter().map(Draft::input).collect(),
            Self::Node(seen) => (app.nodes.get(&seen.node) != Some(&seen.ready)).then(|| Event::NodeSeen(seen.clone())),
            Self::Events(events) => {
                // An outcome's pod may have been seen before it.
                let is_old = |event: &&Event| matches!(event, Event::PodSeen(seen) if !is_news(app, seen));
                return events.iter().filter(|event| !is_old(event)).cloned().map(Draft::input).collect();
            }
        };
        event.map(Draft::input).into_iter().collect()
    }
}

impl Shown {
    fn events(&self, app: &App) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, host) in &app.hosts {
            let gone = host.pod.as_ref().filter(|pod| pod.resource_version <= self.version && !self.pods.contains(&pod.uid));
            if let Some(pod) = gone.filter(|_| !self.odd.contains(name.as_str())) {
                events.push(absence(name, &pod.uid, self.version));
            }
        }
        events
    }
}

impl ShownSecrets {
    fn events(&self, app: &App) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, host) in &app.hosts {
            if self.complete && !self.secrets.iter().any(|seen| seen.host == *name) && self.lacks_secret(app, host) {
                events.push(Event::SecretGone(SecretGone { host: name.clone(), uid: None }));
            }
        }
        events.extend(self.secrets.iter().filter_map(|seen| secret_news(app, seen)));
        events
    }

    /// Whether the host's Secret, as it is known, would have been shown if it were there.
    fn lacks_secret(&self, app: &App, host: &Host) -> bool {
        match &host.secret {
            Secret::Absent => false,
            Secret::Present { resource_version, .. } => *resource_version <= self.version,
            // One that is being put now is told by its step's outcome.
            Secret::Unknown => {
                let puts = |flight: &crate::app::state::Flight| matches!(flight.step, Step::PutSecret { .. });
                !host.flights.values().any(|flight| puts(flight) && flight.incarnation == app.incarnation)
            }
        }
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

fn secret_news(app: &App, seen: &SecretSeen) -> Option<Event> {
    let known = app.hosts.get(&seen.host).map(|host| &host.secret);
    let same = matches!(known, Some(Secret::Present { uid, .. }) if *uid == seen.uid);
    (!same).then(|| Event::SecretSeen(seen.clone()))
}

/// A want is recorded when it changes, when it ends a row of absences, and, as confirmed, the first time in an incarnation and
/// when it is waited for.
fn want_news(app: &App, want: &WantSeen) -> Option<Event> {
    let same = !app.missing.any()
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
        (false, _) => Some(Event::WantSeen(want.clone())),
        (true, false) => Some(Event::WantConfirmed(WantConfirmed { answer: want.answer })),
        (true, true) => None,
    }
}
