//! What the control listener shows of the incarnation that runs now, or that none does.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::actors::{Health, Registry, Vitals};
use crate::app::show;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::{Act, Settings};
use crate::http::control::AppsView;
use crate::http::readiness::{GatewayState, Readiness, Role};
use crate::ids::AppId;
use crate::telemetry::Metrics;

/// A view of whatever runs; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Window(Arc<Inner>);

struct Inner {
    clock: Clock,
    metrics: Metrics,
    acts: bool,
    watch_limit_ms: u64,
    /// The one that runs, or, while none does, what the last one knew: reading goes on.
    shown: Mutex<Option<(Registry, Health)>>,
    /// Why the last incarnation ended, while none runs.
    failed: Mutex<Option<String>>,
}

impl Window {
    /// A view of nothing yet.
    #[must_use]
    pub fn new(settings: &Settings, clock: Clock, metrics: Metrics) -> Self {
        let watch_limit_ms = u64::from(settings.kubernetes.watch_silence_s) * 1_000;
        let acts = settings.act == Act::All;
        Self(Arc::new(Inner { clock, metrics, acts, watch_limit_ms, shown: Mutex::default(), failed: Mutex::default() }))
    }

    /// Shows this incarnation from now on; an error: why there is none, and what the last one knew stays in sight.
    pub fn show(&self, running: Result<(Registry, Health), String>) {
        let failed = match running {
            Ok(running) => {
                *self.0.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
                None
            }
            Err(why) => Some(why),
        };
        *self.0.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    fn shown(&self) -> Option<(Registry, Health)> {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed(&self) -> Option<String> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How it is, for `/readyz`; brings the gauges up to date on the way.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let now_us = self.0.clock.now_us();
        let running = self.shown();
        let vitals = running.as_ref().map_or_else(Vitals::default, |(_, health)| health.vitals());
        let log_failed = self.failed().or(vitals.log_failed);
        let age_ms = |since_us: i64| u64::try_from(now_us.saturating_sub(since_us) / 1_000).unwrap_or(0);
        let gateway = match (vitals.not_believed, vitals.answered_us) {
            (Some(reason), _) => GatewayState::Bad { reason },
            (None, Some(since_us)) => GatewayState::Good { age_ms: age_ms(since_us) },
            (None, None) => GatewayState::Waiting,
        };
        let watch_age_ms = vitals.watch_alive_us.map(age_ms);
        if let Some(age_ms) = watch_age_ms {
            self.0.metrics.watch_age(age_ms.saturating_mul(1_000));
        }
        Readiness {
            replayed: running.is_some(),
            listed: running.as_ref().is_some_and(|(registry, _)| registry.is_listed()),
            watch_age_ms,
            watch_limit_ms: self.0.watch_limit_ms,
            log_writable: running.is_some() && log_failed.is_none(),
            log_failed,
            nodes_unknown: vitals.nodes_unknown,
            role: if self.0.acts { Role::Active } else { Role::Observing },
            gateway,
        }
    }

    /// How many subjects hold each alarm.
    pub fn count_alarms(&self) {
        let Some((registry, _)) = self.shown() else { return };
        let states = registry.states();
        for name in show::ALARMS {
            let raised = states.iter().filter(|(_, state)| state.alarms.keys().any(|alarm| alarm.as_str() == *name)).count();
            self.0.metrics.alarms(name, raised);
        }
    }
}

/// An app that is neither known nor broken is not worth a line.
fn is_shown(state: &App) -> bool {
    !state.is_empty() || state.quarantined
}

impl AppsView for Window {
    fn apps(&self) -> BoxFuture<'_, Value> {
        let apps = self.shown().map(|(registry, _)| registry.states()).unwrap_or_default();
        let apps: Vec<Value> = apps.iter().filter(|(_, state)| is_shown(state)).map(|(app, state)| show::brief(app, state)).collect();
        std::future::ready(json!({ "apps": apps })).boxed()
    }

    fn app<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Option<Value>> {
        let shown = self.shown().and_then(|(registry, _)| {
            let state = registry.state(app).filter(|state| is_shown(state))?;
            Some(show::whole(app, &state, registry.looks_again_us(app)))
        });
        std::future::ready(shown).boxed()
    }
}
