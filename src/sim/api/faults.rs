//! Scripted faults: which request meets which. Ordered and counted, so that a run repeats exactly.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::call::{Call, Verb};
use super::refusal::Refusal;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Action {
    /// It is answered with this, and nothing is done.
    Answer(Canned),
    /// It takes this much longer; later rules still apply.
    Delay(Duration),
    /// The connection breaks before the request arrives: nothing is done.
    DropBefore,
    /// The request is done, the connection breaks before the answer.
    DropAfter,
    /// The request is done, and the answer's body breaks off in the middle.
    CutBody,
    /// Nothing is done and no answer ever comes.
    HangBefore,
    /// The request is done and no answer ever comes.
    HangAfter,
    /// The request is done, and its answer takes this much longer.
    DelayAfter(Duration),
    /// A watch: headers, then silence for ever.
    Mute,
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Delay(_) => "delay",
            Self::DropBefore => "drop_before",
            Self::DropAfter => "drop_after",
            Self::CutBody => "cut_body",
            Self::HangBefore => "hang_before",
            Self::HangAfter => "hang_after",
            Self::DelayAfter(_) => "delay_after",
            Self::Mute => "mute",
        }
    }
}

/// A ready answer.
#[derive(Debug, Clone)]
pub struct Canned {
    /// HTTP status.
    pub status: u16,
    /// Headers besides the audit id.
    pub headers: Vec<(&'static str, String)>,
    /// The body as it is sent.
    pub body: Vec<u8>,
    /// Whether the body never ends.
    pub open: bool,
}

impl Canned {
    /// A body of JSON.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string().into_bytes(), open: false }
    }

    /// A body of text.
    #[must_use]
    pub fn text(status: u16, body: &str) -> Self {
        let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
        Self { status, headers, body: body.as_bytes().to_vec(), open: false }
    }

    /// A refusal.
    #[must_use]
    pub fn refusal(refusal: &Refusal) -> Self {
        let mut canned = Self::json(refusal.code, &refusal.body);
        canned.headers.extend(refusal.headers.iter().cloned());
        canned
    }

    /// 429 of priority and fairness: text, no Status, Retry-After.
    #[must_use]
    pub fn overloaded(retry_after_s: u32) -> Self {
        let mut canned = Self::text(429, "Too many requests, please try again later.\n");
        canned.headers.push(("retry-after", retry_after_s.to_string()));
        canned
    }

    /// 403 of a quota on pods.
    #[must_use]
    pub fn quota(name: &str) -> Self {
        let message = format!("pods {name:?} is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0");
        let details = serde_json::json!({"name": name, "kind": "pods"});
        Self::refusal(&Refusal::new(403, "Forbidden", &message, details))
    }

    /// 500 of an admission webhook that does not answer.
    #[must_use]
    pub fn webhook_down() -> Self {
        let message = "Internal error occurred: failed calling webhook \"validate.example.com\": failed to call webhook: Post \
                       \"https://hook.default.svc:443/?timeout=10s\": dial tcp 10.96.0.7:443: connect: connection refused";
        Self::refusal(&Refusal::internal(message))
    }

    /// 410 as the status of a request.
    #[must_use]
    pub fn gone() -> Self {
        Self::refusal(&Refusal::watch_expired(1, 511))
    }

    /// 500 with a Status.
    #[must_use]
    pub fn internal() -> Self {
        Self::refusal(&Refusal::internal("Internal error occurred: etcdserver: request timed out"))
    }
}

/// Which requests a rule is about; what is left out matches all.
#[derive(Debug, Clone, Default)]
pub struct Match {
    /// Whose client.
    pub user: Option<&'static str>,
    /// What is done.
    pub verb: Option<Verb>,
    /// The plural.
    pub resource: Option<&'static str>,
    /// The subresource; `Some("")` is the object itself.
    pub subresource: Option<&'static str>,
    /// What the name begins with.
    pub name_prefix: Option<String>,
    /// Only pages after the first.
    pub continued: bool,
}

impl Match {
    /// A verb on a kind's objects, by the daemon's client.
    #[must_use]
    pub fn on(verb: Verb, resource: &'static str) -> Self {
        Self { user: Some(super::DAEMON), verb: Some(verb), resource: Some(resource), subresource: Some(""), ..Self::default() }
    }

    /// Everything the daemon's client asks.
    #[must_use]
    pub fn all() -> Self {
        Self { user: Some(super::DAEMON), ..Self::default() }
    }

    /// Reading logs.
    #[must_use]
    pub fn logs() -> Self {
        Self { subresource: Some("log"), ..Self::on(Verb::Get, "pods") }
    }

    /// Narrowed to names that begin so.
    #[must_use]
    pub fn named(mut self, prefix: &str) -> Self {
        self.name_prefix = Some(prefix.to_owned());
        self
    }

    fn fits(&self, user: &str, call: &Call, name: &str) -> bool {
        self.user.is_none_or(|wanted| wanted == user)
            && self.verb.is_none_or(|wanted| wanted == call.verb)
            && self.resource.is_none_or(|wanted| wanted == call.resource.plural)
            && self.subresource.is_none_or(|wanted| wanted == call.subresource)
            && self.name_prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix))
            && (!self.continued || call.parameter("continue").is_some())
    }
}

#[derive(Debug)]
struct Rule {
    id: u64,
    matching: Match,
    skip: u32,
    times: u32,
    action: Action,
}

/// The rules in force, in the order they were set.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Rules>);

#[derive(Debug, Default)]
struct Rules {
    next: u64,
    rules: Vec<Rule>,
    met: u64,
    /// Requests that met each rule, by its number.
    met_by: BTreeMap<u64, u64>,
}

impl Faults {
    /// The next matching request meets `action`.
    pub fn once(&self, matching: Match, action: Action) -> u64 {
        self.set(matching, 0, 1, action)
    }

    /// Every matching request meets `action`, until it is cleared.
    pub fn always(&self, matching: Match, action: Action) -> u64 {
        self.set(matching, 0, u32::MAX, action)
    }

    /// After `skip` matching requests, the next `times` meet `action`. Returns the rule's number.
    pub fn set(&self, matching: Match, skip: u32, times: u32, action: Action) -> u64 {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.next += 1;
        let id = rules.next;
        rules.rules.push(Rule { id, matching, skip, times, action });
        id
    }

    /// Takes a rule back.
    pub fn clear(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rules.retain(|rule| rule.id != id);
    }

    /// Takes all rules back.
    pub fn clear_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rules.clear();
    }

    /// How many requests met a fault so far.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).met
    }

    /// How many requests met this rule so far.
    #[must_use]
    pub fn met_by(&self, id: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).met_by.get(&id).copied().unwrap_or(0)
    }

    /// What this request meets: the delays before the first other fault added up, and that fault.
    pub(super) fn take(&self, user: &str, call: &Call, name: &str) -> Met {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Rules { rules: in_force, met_by, .. } = &mut *rules;
        let mut met = Met::default();
        for rule in in_force {
            if !rule.matching.fits(user, call, name) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.times = if rule.times == u32::MAX { u32::MAX } else { rule.times.saturating_sub(1) };
            met.name = Some(rule.action.name());
            *met_by.entry(rule.id).or_default() += 1;
            if let Action::Delay(delay) = rule.action {
                met.delay += delay;
            } else {
                met.action = Some(rule.action.clone());
                break;
            }
        }
        rules.rules.retain(|rule| rule.times > 0);
        if met.name.is_some() {
            rules.met += 1;
        }
        met
    }
}

/// What a request meets.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub(super) delay: Duration,
    pub(super) action: Option<Action>,
    pub(super) name: Option<&'static str>,
}
