//! When each subject is to look again: one timer for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;

/// The times at which subjects of a sort look again; cheap to clone, all clones are one.
#[derive(Debug)]
pub(super) struct Wheel<K>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    times: Mutex<Times<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct Times<K> {
    by_time: BTreeSet<(i64, K)>,
    by_key: BTreeMap<K, i64>,
}

// Derived, they would ask the same of the key.
impl<K> Default for Wheel<K> {
    fn default() -> Self {
        let times = Times { by_time: BTreeSet::new(), by_key: BTreeMap::new() };
        Self(Arc::new(Inner { times: Mutex::new(times), changed: Notify::new() }))
    }
}

impl<K> Clone for Wheel<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Ord + Clone> Wheel<K> {
    fn times(&self) -> std::sync::MutexGuard<'_, Times<K>> {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets when the subject looks again, log time; `None`: only when something comes.
    pub(super) fn set(&self, key: &K, time_us: Option<i64>) {
        let mut times = self.times();
        times.set(key, time_us);
        let is_next = times.by_time.first().is_some_and(|(_, first)| first == key);
        drop(times);
        if is_next {
            self.0.changed.notify_one();
        }
    }

    /// When the subject looks again.
    pub(super) fn get(&self, key: &K) -> Option<i64> {
        self.times().by_key.get(key).copied()
    }

    /// Waits until a subject is due, and takes it off.
    pub(super) async fn due(&self, clock: &Clock) -> K {
        loop {
            let next = match self.times().take_due(clock.now_us()) {
                Ok(key) => return key,
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

impl<K: Ord + Clone> Times<K> {
    fn set(&mut self, key: &K, time_us: Option<i64>) {
        if self.by_key.get(key).copied() == time_us {
            return;
        }
        if let Some(former) = self.by_key.remove(key) {
            self.by_time.remove(&(former, key.clone()));
        }
        if let Some(time_us) = time_us {
            self.by_key.insert(key.clone(), time_us);
            self.by_time.insert((time_us, key.clone()));
        }
    }

    /// Takes off the first subject that is due, or says when the next one is.
    fn take_due(&mut self, now_us: i64) -> Result<K, Option<i64>> {
        match self.by_time.pop_first() {
            Some((time_us, key)) if time_us <= now_us => {
                self.by_key.remove(&key);
                Ok(key)
            }
            Some((time_us, key)) => {
                self.by_time.insert((time_us, key));
                Err(Some(time_us))
            }
            None => Err(None),
        }
    }
}
