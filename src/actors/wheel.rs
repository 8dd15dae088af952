//! When each subject is to look again: one timer for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::ids::AppId;

/// The times at which subjects look again; cheap to clone, all clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Wheel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    times: Mutex<Times>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Times {
    by_time: BTreeSet<(i64, AppId)>,
    by_app: BTreeMap<AppId, i64>,
}

impl Wheel {
    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets when the subject looks again, log time; `None`: only when something comes.
    pub(super) fn set(&self, app: &AppId, time_us: Option<i64>) {
        let mut times = self.times();
        times.set(app, time_us);
        let is_next = times.by_time.first().is_some_and(|(_, first)| first == app);
        drop(times);
        if is_next {
            self.0.changed.notify_one();
        }
    }

    /// When the subject looks again.
    pub(super) fn get(&self, app: &AppId) -> Option<i64> {
        self.times().by_app.get(app).copied()
    }

    /// Waits until a subject is due, and takes it off.
    pub(super) async fn due(&self, clock: &Clock) -> AppId {
        loop {
            let next = match self.times().take_due(clock.now_us()) {
                Ok(app) => return app,
                Err(next) => next,
            };
            tokio::select! {
                biased;
                () = self.0.changed.notified() => {}
                () = clock.sleep_until(next.unwrap_or(i64::MAX)) => {}
            }
        }
    }
}

impl Times {
    fn set(&mut self, app: &AppId, time_us: Option<i64>) {
        if self.by_app.get(app).copied() == time_us {
            return;
        }
        if let Some(former) = self.by_app.remove(app) {
            self.by_time.remove(&(former, app.clone()));
        }
        if let Some(time_us) = time_us {
            self.by_app.insert(app.clone(), time_us);
            self.by_time.insert((time_us, app.clone()));
        }
    }

    /// Takes off the first subject that is due, or says when the next one is.
    fn take_due(&mut self, now_us: i64) -> Result<AppId, Option<i64>> {
        match self.by_time.pop_first() {
            Some((time_us, app)) if time_us <= now_us => {
                self.by_app.remove(&app);
                Ok(app)
            }
            Some((time_us, app)) => {
                self.by_time.insert((time_us, app));
                Err(Some(time_us))
            }
            None => Err(None),
        }
    }
}
