//! Whether an answer of the gateway is believed, and which of its wants are. Pure: no I/O, no clock, no memory.
//!
//! Each want is decoded and checked on its own: a bad one is refused with its reason and touches no other app
//! (hosted-apps.md, "Answers are judged before they are believed").

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::protocol::{Answer, Report, ReportState};
use crate::events::kinds::want::{WantFault, WantSeen};
use crate::ids::{AppId, HostName, PackageDigest, shown};

/// Why a whole answer changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotBelieved {
    /// None came.
    #[error("no answer: {0}")]
    Transport(String),
    /// It was no 2xx.
    #[error("status {0}")]
    Status(u16),
    /// It is not the JSON of an answer.
    #[error("no answer's JSON: {0}")]
    Json(String),
    /// It speaks of another world.
    #[error("of the world \"{0}\", which is not ours")]
    World(String),
    /// It names more apps than `limits.apps`.
    #[error("names {named} apps; limits.apps is {limit}")]
    TooMany {
        /// How many it names.
        named: usize,
        /// How many are allowed.
        limit: usize,
    },
}

/// A want that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedWant {
    /// What it says, as the log takes it when it changed.
    pub want: WantSeen,
    /// The gateway asks for the host's last lines; never in the log.
    pub logs_wanted: bool,
}

/// A want that is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWant {
    /// Of which app, when that is a name.
    pub app: Option<AppId>,
    /// Of which host, when that is a name.
    pub host: Option<HostName>,
    /// Why.
    pub fault: WantFault,
    /// Why in words, fit to be printed.
    pub text: String,
    /// The host as the gateway wrote it, so that it is told in its own words; empty when it wrote none.
    named_host: String,
}

impl RefusedWant {
    /// The report that tells the gateway so; `None` when the want does not say of whom.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        let app = self.app.as_ref().filter(|_| !self.named_host.is_empty())?;
        Some(Report {
            org: app.org().to_owned(),
            name: app.name().to_owned(),
            host: self.named_host.clone(),
            state: ReportState::Failed,
            why: format!("refused: {}", self.text),
        })
    }
}

/// An answer that is believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// Its number within the incarnation.
    pub answer: u64,
    /// The wants that are believed.
    pub wants: BTreeMap<AppId, JudgedWant>,
    /// The others, as the answer lists them.
    pub refused: Vec<RefusedWant>,
}

impl Judged {
    /// Whether the answer names the app; a refused want names it too.
    #[must_use]
    pub fn names(&self, app: &AppId) -> bool {
        self.wants.contains_key(app) || self.refused.iter().any(|want| want.app.as_ref() == Some(app))
    }

    /// Whether it names no app at all.
    #[must_use]
    pub fn names_none(&self) -> bool {
        self.wants.is_empty() && self.refused.iter().all(|want| want.app.is_none())
    }

    /// The apps it names.
    #[must_use]
    pub fn named(&self) -> BTreeSet<&AppId> {
        self.wants.keys().chain(self.refused.iter().filter_map(|want| want.app.as_ref())).collect()
    }
}

/// Judges a 2xx answer's body. `answer` is its number, `world` the one that is ours, `limit` the most apps it may name.
///
/// # Errors
/// When nothing of it is believed.
pub fn judge(answer: u64, body: &[u8], world: &str, limit: usize) -> Result<Judged, NotBelieved> {
    let said: Answer = serde_json::from_slice(body).map_err(|e| NotBelieved::Json(shown(&e.to_string(), 200)))?;
    if said.world != world {
        return Err(NotBelieved::World(shown(&said.world, 80)));
    }
    if said.apps.len() > limit {
        return Err(NotBelieved::TooMany { named: said.apps.len(), limit });
    }
    let decoded: Vec<Decoded> = said.apps.iter().map(|want| decode(answer, want)).collect();
    let apps = count(decoded.iter().filter_map(|one| one.app.clone()));
    let hosts = hosts_by_app(&decoded);
    let mut judged = Judged { answer, ..Judged::default() };
    for one in decoded {
        match check_against_the_others(one, &apps, &hosts) {
            Ok((app, want)) => {
                judged.wants.insert(app, want);
            }
            Err(refused) => judged.refused.push(*refused),
        }
    }
    Ok(judged)
}

/// One want after its own fields were checked.
struct Decoded {
    app: Option<AppId>,
    host: Option<HostName>,
    named_host: String,
    outcome: Result<JudgedWant, Fault>,
}

type Fault = (WantFault, String);

fn count(apps: impl Iterator<Item = AppId>) -> BTreeMap<AppId, usize> {
    let mut counts = BTreeMap::new();
    for app in apps {
        *counts.entry(app).or_insert(0) += 1;
    }
    counts
}

/// Which apps name a host, as wanted or as live; what is refused by itself names none.
fn hosts_by_app(decoded: &[Decoded]) -> BTreeMap<HostName, BTreeSet<AppId>> {
    let mut hosts: BTreeMap<HostName, BTreeSet<AppId>> = BTreeMap::new();
    for one in decoded {
        if let (Some(app), Ok(judged)) = (&one.app, &one.outcome) {
            for host in std::iter::once(&judged.want.host).chain(&judged.want.live_host) {
                hosts.entry(host.clone()).or_default().insert(app.clone());
            }
        }
    }
    hosts
}

fn check_against_the_others(
    one: Decoded,
    apps: &BTreeMap<AppId, usize>,
    hosts: &BTreeMap<HostName, BTreeSet<AppId>>,
) -> Result<(AppId, JudgedWant), Box<RefusedWant>> {
    let Decoded { app, host, named_host, outcome } = one;
    let refused = |app, (fault, text)| Box::new(RefusedWant { app, host, fault, text, named_host });
    let (app, want) = match (app, outcome) {
        (Some(app), Ok(want)) => (app, want),
        (None, Ok(_)) => return Err(refused(None, (WantFault::Malformed, "it names no app".to_owned()))),
        (app, Err(fault)) => return Err(refused(app, fault)),
    };
    if apps.get(&app).is_some_and(|times| *times > 1) {
        let text = format!("the answer names {app} more than once");
        return Err(refused(Some(app), (WantFault::TwiceNamed, text)));
    }
    let shared = std::iter::once(&want.want.host).chain(&want.want.live_host).find(|host| hosts.get(*host).is_some_and(|by| by.len() > 1));
    if let Some(host) = shared {
        let text = format!("the answer names the host {host} for more than one app");
        return Err(refused(Some(app), (WantFault::HostShared, text)));
    }
    Ok((app, want))
}

fn decode(answer: u64, want: &Value) -> Decoded {
    let app = text(want, "org").and_then(|org| {
        let name = text(want, "name")?;
        AppId::new(org, name).map_err(|e| (WantFault::Malformed, e.to_string()))
    });
    let named_host: String = want.get("host").and_then(Value::as_str).unwrap_or_default().chars().take(300).collect();
    let host = HostName::new(&named_host).ok();
    match app {
        Ok(app) => Decoded { app: Some(app), host, named_host, outcome: fields(answer, want) },
        Err(fault) => Decoded { app: None, host, named_host, outcome: Err(fault) },
    }
}

fn fields(answer: u64, want: &Value) -> Result<JudgedWant, Fault> {
    let bad_host = |e: crate::ids::BadName| (WantFault::BadHost, e.to_string());
    let host = HostName::new(text(want, "host")?).map_err(bad_host)?;
    let live_host = match want.get("live_host") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => Some(HostName::new(text).map_err(bad_host)?),
        Some(_) => return Err(malformed("live_host", "a string or null")),
    };
    let sha256 = PackageDigest::parse(text(want, "sha256")?).map_err(|e| (WantFault::BadDigest, e.to_string()))?;
    let want_seen = WantSeen {
        answer,
        release: release(want)?,
        sha256,
        host,
        registered: flag(want, "registered")?.ok_or_else(|| malformed("registered", "true or false"))?,
        failed: flag(want, "failed")?.ok_or_else(|| malformed("failed", "true or false"))?,
        live_host,
    };
    Ok(JudgedWant { want: want_seen, logs_wanted: flag(want, "logs_wanted")?.unwrap_or(false) })
}

fn malformed(field: &str, allowed: &str) -> Fault {
    (WantFault::Malformed, format!("{field} is missing or is not {allowed}"))
}

fn text<'a>(want: &'a Value, field: &str) -> Result<&'a str, Fault> {
    want.get(field).and_then(Value::as_str).ok_or_else(|| malformed(field, "a string"))
}

/// A flag's value; `None` when the want does not have it.
fn flag(want: &Value, field: &str) -> Result<Option<bool>, Fault> {
    match want.get(field) {
        None => Ok(None),
        Some(value) => value.as_bool().map(Some).ok_or_else(|| malformed(field, "true or false")),
    }
}

fn release(want: &Value) -> Result<u64, Fault> {
    let number = want.get("release").and_then(Value::as_number).ok_or_else(|| malformed("release", "a whole number"))?;
    match number.as_u64() {
        Some(release) if release >= 1 => Ok(release),
        Some(_) => Err((WantFault::BadRelease, "release 0: a whole number from 1".to_owned())),
        None => Err((WantFault::BadRelease, format!("release {}: a whole number from 1", shown(&number.to_string(), 40)))),
    }
}
