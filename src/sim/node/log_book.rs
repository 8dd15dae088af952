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

    /// What each container of the pods of a name has printed, by its name: a kubelet is asked without a uid. A node that is cut
    /// off may still have a former pod of the name; the one that can be read counts.
    #[must_use]
    pub fn of_name(&self, namespace: &str, pod: &str) -> BTreeMap<String, LogRead> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut containers = BTreeMap::new();
        for (key, read) in book.iter().filter(|(key, _)| key.namespace == namespace && key.pod == pod) {
            if *read != LogRead::Unreachable || !containers.contains_key(&key.container) {
                containers.insert(key.container.clone(), read.clone());
            }
        }
        containers
    }
}

impl LogSource for LogBook {
    /// No container of the scripts has a former life.
    fn read(&self, key: &LogKey, previous: bool) -> LogRead {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read = book.get(key).cloned().unwrap_or(LogRead::Unreachable);
        if previous { without_former(read) } else { read }
    }
}

/// What is read of a container's former life.
pub(super) fn without_former(read: LogRead) -> LogRead {
    if read == LogRead::Unreachable { read } else { LogRead::NoPrevious }
}
