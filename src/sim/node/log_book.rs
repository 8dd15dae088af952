//! What the containers of a node have printed, as its API server asks for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::sim::api::logs::{LogKey, LogRead, LogSource};

/// The output of every container of every pod that is there.
#[derive(Debug, Default)]
pub struct LogBook(Mutex<BTreeMap<LogKey, LogRead>>);

impl LogBook {
    /// Sets what a container has printed so far.
    pub fn set(&self, key: LogKey, read: LogRead) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, read);
    }

    /// A container's output went with its pod.
    pub fn forget(&self, key: &LogKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl LogSource for LogBook {
    /// No container of the scripts has a former life.
    fn read(&self, key: &LogKey, previous: bool) -> LogRead {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match book.get(key) {
            Some(LogRead::Unreachable) | None => LogRead::Unreachable,
            Some(_) if previous => LogRead::NoPrevious,
            Some(read) => read.clone(),
        }
    }
}
