//! The objects, one revision counter, and the history of changes that watches and consistent pages read. Knows no request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::object::Object;

/// Where an object is: plural, namespace (empty for cluster-wide kinds), name.
pub(super) type Key = (&'static str, String, String);

/// What happened to an object at a revision.
#[derive(Debug)]
pub(super) struct Change {
    /// The revision; also the object's resourceVersion.
    pub(super) revision: u64,
    /// The object's place.
    pub(super) key: Key,
    /// The object before; `None` when it was created.
    pub(super) before: Option<Arc<Object>>,
    /// The object after; its last state when it was removed.
    pub(super) after: Arc<Object>,
    /// Whether it was removed.
    pub(super) removed: bool,
}

/// Everything the API server remembers.
#[derive(Debug)]
pub(super) struct Store {
    revision: u64,
    floor: u64,
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Arc<Change>>,
    history_max: usize,
}

impl Store {
    /// Empty; the oldest changes beyond `history_max` are compacted away.
    #[must_use]
    pub(super) fn new(history_max: usize) -> Self {
        Self { revision: 1, floor: 1, objects: BTreeMap::new(), history: VecDeque::new(), history_max }
    }

    /// The newest revision.
    #[must_use]
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Changes up to and with this revision are compacted away.
    #[must_use]
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// One object.
    #[must_use]
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// The objects of a kind, of one namespace or of all, in the order of their names.
    pub(super) fn list<'a>(&'a self, plural: &'static str, namespace: Option<&'a str>) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let from = (plural, namespace.unwrap_or_default().to_owned(), String::new());
        let within = move |key: &Key| key.0 == plural && namespace.is_none_or(|namespace| key.1 == namespace);
        self.objects.range(from..).take_while(move |(key, _)| within(key))
    }

    /// The objects of a kind as they were at `revision`; `None` when that is compacted away.
    #[must_use]
    pub(super) fn list_at(&self, plural: &'static str, namespace: Option<&str>, revision: u64) -> Option<BTreeMap<Key, Arc<Object>>> {
        if revision < self.floor {
            return None;
        }
        let mut objects: BTreeMap<Key, Arc<Object>> =
            self.list(plural, namespace).map(|(key, object)| (key.clone(), object.clone())).collect();
        let undone = self.history.iter().rev().take_while(|change| change.revision > revision);
        for change in undone.filter(|change| change.key.0 == plural && namespace.is_none_or(|wanted| change.key.1 == wanted)) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    /// The changes after `revision`, oldest first.
    pub(super) fn since(&self, revision: u64) -> impl Iterator<Item = &Arc<Change>> {
        let from = self.history.partition_point(|change| change.revision <= revision);
        self.history.range(from..)
    }

    /// Creates or replaces an object; gives it the next revision.
    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Arc<Change> {
        self.stamp(&mut object);
        let after = Arc::new(Object::new(object));
        let before = self.objects.insert(key.clone(), after.clone());
        self.remember(Change { revision: self.revision, key, before, after, removed: false })
    }

    /// Removes an object, which takes a revision too; `None` when there is none.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Change>> {
        let before = self.objects.remove(key)?;
        let mut object = before.value().clone();
        self.stamp(&mut object);
        let change =
            Change { revision: self.revision, key: key.clone(), before: Some(before), after: Arc::new(Object::new(object)), removed: true };
        Some(self.remember(change))
    }

    /// Forgets all history: watches and pages of the past are answered 410 from now on.
    pub(super) fn compact(&mut self) {
        self.floor = self.revision;
        self.history.clear();
    }

    /// Lets the revision jump, as a cluster's does that other objects are changed in.
    pub(super) fn skip(&mut self, revisions: u64) {
        self.revision += revisions;
    }

    fn stamp(&mut self, object: &mut Value) {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
    }

    fn remember(&mut self, change: Change) -> Arc<Change> {
        let change = Arc::new(change);
        self.history.push_back(change.clone());
        while self.history.len() > self.history_max {
            if let Some(oldest) = self.history.pop_front() {
                self.floor = oldest.revision;
            }
        }
        change
    }
}
