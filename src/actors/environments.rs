//! The environments of hosts that live, in memory alone, each with what takes its values out of a text. That is costly to make
//! and large: made once, when it is first needed, and kept as long as there is room for it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::slot::HostKey;
use crate::events::kinds::tail::{MessageText, TailOf};
use crate::ids::{AppId, HostName};
use crate::kube::convert::{MESSAGE_BYTES, cut};
use crate::kube::environment::Environment;
use crate::kube::redact::{Cut, Redactor};

/// What all redactors that are kept for their next use may take, bytes; the last one is kept whatever it takes.
const KEPT_BYTES: usize = 64 << 20;

/// The redactors that were made last.
type Recent = Arc<Mutex<VecDeque<Arc<Redactor>>>>;

/// All of them.
#[derive(Default)]
pub(super) struct Environments {
    held: Mutex<BTreeMap<HostKey, Arc<Held>>>,
    recent: Recent,
}

/// One host's environment.
pub(super) struct Held {
    environment: Environment,
    redactor: Mutex<Weak<Redactor>>,
    recent: Recent,
}

/// What was said about a pod in words, as it was said: redacted by whoever keeps it, once it is known to be news.
#[derive(Clone)]
pub(super) struct Words {
    said: Vec<(TailOf, String)>,
    by: Arc<Held>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Environments {
    /// The host's environment, as this incarnation put it.
    pub(super) fn get(&self, app: &AppId, host: &HostName) -> Option<Arc<Held>> {
        locked(&self.held).get(&(app.clone(), host.clone())).cloned()
    }

    /// Keeps the host's environment in place of the former one, or forgets it.
    pub(super) fn keep(&self, app: &AppId, host: &HostName, environment: Option<Environment>) {
        let key = (app.clone(), host.clone());
        let held = environment.map(|environment| {
            let recent = Arc::clone(&self.recent);
            Arc::new(Held { environment, redactor: Mutex::default(), recent })
        });
        match held {
            Some(held) => locked(&self.held).insert(key, held),
            None => locked(&self.held).remove(&key),
        };
    }

    /// Forgets the environments of hosts that are there no more; `is_there` is asked after the hosts were looked up.
    pub(super) fn forget(&self, is_there: impl Fn(&AppId, &HostName) -> bool) {
        let held: Vec<HostKey> = locked(&self.held).keys().cloned().collect();
        let gone = held.into_iter().filter(|(app, host)| !is_there(app, host));
        for key in gone {
            locked(&self.held).remove(&key);
        }
    }
}

impl Held {
    /// Its file, as the Secret holds it.
    pub(super) fn file(&self) -> Option<String> {
        self.environment.file().ok()
    }

    /// What takes its values out of a text. Making it takes a second or more when the environment is at its limit, so nothing that
    /// others wait for may ask for it.
    pub(super) fn redactor(&self) -> Arc<Redactor> {
        let mut known = locked(&self.redactor);
        if let Some(redactor) = known.upgrade() {
            return redactor;
        }
        let redactor = Arc::new(Redactor::new(&self.environment));
        *known = Arc::downgrade(&redactor);
        let mut recent = locked(&self.recent);
        recent.push_back(Arc::clone(&redactor));
        while recent.len() > 1 && recent.iter().map(|redactor| redactor.bytes()).sum::<usize>() > KEPT_BYTES {
            recent.pop_front();
        }
        redactor
    }
}

impl Words {
    /// What was said, if anything was and the environment is known: without it nothing may be kept.
    pub(super) fn new(said: Vec<(TailOf, String)>, by: impl FnOnce() -> Option<Arc<Held>>) -> Option<Self> {
        if said.is_empty() { None } else { by().map(|by| Self { said, by }) }
    }

    /// What may be kept of it. Names can be longer than the values that they stand for: it is cut again, after the redaction.
    pub(super) fn redacted(&self) -> impl Iterator<Item = MessageText> {
        let redactor = self.by.redactor();
        let ends = Cut { begin: true, end: true };
        self.said.iter().map(move |(of, text)| MessageText { of: of.clone(), text: cut(&redactor.redact(text, ends), MESSAGE_BYTES) })
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.said == other.said && Arc::ptr_eq(&self.by, &other.by)
    }
}

impl Eq for Words {}

/// It may hold a secret: only of whom it is, is shown.
impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.said.iter().map(|(of, _)| of)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Uid, Word};

    fn held(environments: &Environments, host: &str, variables: &[(&str, &str)]) -> Arc<Held> {
        let (app, host) = (AppId::new("acme", "bot").expect("a name"), HostName::new(host).expect("a name"));
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        environments.keep(&app, &host, Some(Environment::new(variables)));
        environments.get(&app, &host).expect("it is kept")
    }

    #[test]
    fn a_redactor_is_made_once_an_environment() {
        let environments = Environments::default();
        let one = held(&environments, "one", &[("KEY", "correct-horse")]);
        let first = Arc::as_ptr(&one.redactor());
        assert_eq!(Arc::as_ptr(&one.redactor()), first);
        let other = held(&environments, "one", &[("KEY", "battery-staple")]);
        assert_eq!(other.redactor().redact("battery-staple", Cut::default()), "[KEY]");
    }

    #[test]
    fn what_all_redactors_take_is_bounded() {
        let environments = Environments::default();
        let large: Vec<Arc<Held>> = (0..5_u32)
            .map(|number| {
                let value: String = (0..150_000_u32).map(|at| char::from(b'a' + (at.wrapping_mul(at + number) % 26) as u8)).collect();
                held(&environments, &format!("host-{number}"), &[("KEY", &format!("{number}{value}"))])
            })
            .collect();
        for one in large.iter().cycle().take(12) {
            let _ = one.redactor();
            let recent = locked(&environments.recent);
            let bytes: usize = recent.iter().map(|redactor| redactor.bytes()).sum();
            assert!(bytes <= KEPT_BYTES || recent.len() == 1, "{bytes} bytes in {}", recent.len());
        }
    }

    #[test]
    fn what_names_make_longer_is_cut_again_and_shows_no_value() {
        let environments = Environments::default();
        let (name, value) = ("N".repeat(500), "sésame-ouvre-toi");
        let by = held(&environments, "one", &[(&name, value)]);
        let of = TailOf {
            host: HostName::new("one").expect("a name"),
            uid: Uid::new("u1").expect("a uid"),
            container: Word::new("app"),
            ended: true,
        };
        for before in ["", "é", "éé."] {
            let said = vec![(of.clone(), format!("{before}{}", value.repeat(200)))];
            let words = Words::new(said, || Some(Arc::clone(&by))).expect("words");
            let kept: Vec<MessageText> = words.redacted().collect();
            assert!(kept[0].text.len() <= MESSAGE_BYTES && kept[0].text.len() > MESSAGE_BYTES - 4);
            assert!(!kept[0].text.contains("sésa"), "{}", kept[0].text);
            assert!(!format!("{words:?}").contains("sésa"));
        }
    }
}
