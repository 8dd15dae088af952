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
        if times.by_app.get(app).copied() == time_us {
            return;
        }
        if let Some(former) = times.by_app.remove(app) {
            times.by_time.remove(&(former, app.clone()));
        }
        if let Some(time_us) = time_us {
            times.by_app.insert(app.clone(), time_us);
            times.by_time.insert((time_us, app.clone()));
        }
        drop(times);
        self.0.changed.notify_one();
    }

    /// When the subject looks again.
    pub(super) fn get(&self, app: &AppId) -> Option<i64> {
        self.times().by_app.get(app).copied()
    }

    /// Waits until a subject is due, and takes it off.
    pub(super) async fn due(&self, clock: &Clock) -> AppId {
        loop {
            let first = self.times().by_time.first().cloned();
            match first {
                Some((time_us, app)) if time_us <= clock.now_us() => {
                    self.set(&app, None);
                    return app;
                }
                Some((time_us, _)) => {
                    tokio::select! {
                        biased;
                        () = self.0.changed.notified() => {}
                        () = clock.sleep_until(time_us) => {}
                    }
                }
                None => self.0.changed.notified().await,
            }
        }
    }
}
