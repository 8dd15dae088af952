//! What readiness is made of, as the actors know it.

use std::sync::{Arc, Mutex, PoisonError};

/// The daemon's health; cheap to clone, all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<Vitals>>);

/// What is known now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vitals {
    /// Log time of the watch's last sign of life.
    pub watch_alive_us: Option<i64>,
    /// Why nodes cannot be watched, when they cannot: then nothing is ever forced away.
    pub nodes_unknown: bool,
    /// The pods were listed in this incarnation.
    pub pods_listed: bool,
    /// The Secrets were, too: until then their wait holds up the first plans.
    pub secrets_listed: bool,
    /// Log time of the last believed answer.
    pub answered_us: Option<i64>,
    /// Why the last answer was not believed.
    pub not_believed: Option<String>,
    /// Why the log takes no appends.
    pub log_failed: Option<String>,
}

impl Health {
    /// What is known now.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes something.
    pub(super) fn note(&self, note: impl FnOnce(&mut Vitals)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
