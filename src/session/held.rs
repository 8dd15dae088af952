//! What is known of a session's claim or Service: absent, there at a version, or unknown, when a write of ours may have been carried
//! out and nobody saw it.

use crate::events::kinds::session::{ClaimSeen, ServiceSeen};
use crate::events::kinds::step::ObjectSeen;
use crate::ids::{RecordId, Seq, Tenant, Uid, Word};
use crate::subject::pod::{At, Delete, remember_gone};

/// An object as it was seen.
pub trait Shown: Clone {
    /// Its name.
    fn name(&self) -> &Word;
    /// Its identity and version.
    fn object(&self) -> ObjectSeen;
    /// The step that made it.
    fn step(&self) -> Option<RecordId>;
    /// Whose it is.
    fn tenant(&self) -> Option<&Tenant>;
    /// Whether it is being deleted.
    fn deleting(&self) -> bool;
    /// Whether both say the same, whatever their versions.
    fn says_the_same(&self, other: &Self) -> bool;
}

macro_rules! shown {
    ($($kind:ident),*) => { $(
        impl Shown for $kind {
            fn name(&self) -> &Word {
                &self.name
            }
            fn object(&self) -> ObjectSeen {
                ObjectSeen { uid: self.uid.clone(), resource_version: self.resource_version }
            }
            fn step(&self) -> Option<RecordId> {
                self.step
            }
            fn tenant(&self) -> Option<&Tenant> {
                self.tenant.as_ref()
            }
            fn deleting(&self) -> bool {
                self.deleting
            }
            fn says_the_same(&self, other: &Self) -> bool {
                *self == Self { resource_version: self.resource_version, ..other.clone() }
            }
        }
    )* };
}
shown!(ClaimSeen, ServiceSeen);

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<V> {
    /// The name it was made or seen under.
    pub name: Option<Word>,
    /// Whether it is there.
    pub known: Known<V>,
    /// A create that was never answered: for a while from then on it may still appear.
    pub doubt_since_us: Option<i64>,
    /// Uids that are gone, the last few: a uid once gone never comes back.
    pub gone_uids: Vec<Uid>,
}

impl<V> Default for Held<V> {
    fn default() -> Self {
        Self { name: None, known: Known::Unknown, doubt_since_us: None, gone_uids: Vec::new() }
    }
}

/// Whether an object is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known<V> {
    /// Nobody looked, or a write was never answered.
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Present(Thing<V>),
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing<V> {
    /// Its identity.
    pub uid: Uid,
    /// The newest version of it that is known.
    pub resource_version: u64,
    /// The record that last said something new.
    pub seq: Seq,
    /// As last seen; `None` while only our own write says that it is there.
    pub view: Option<V>,
    /// Since when it is being deleted, log time.
    pub deleting_since_us: Option<i64>,
    /// Our delete of it.
    pub delete: Option<Delete>,
}

impl<V> Thing<V> {
    /// Whether it goes, or was told to: nothing is built on it any more.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.deleting_since_us.is_some() || self.delete_stands()
    }

    /// Whether our delete of it is in flight, or was done.
    #[must_use]
    pub fn delete_stands(&self) -> bool {
        self.delete.is_some_and(|delete| !delete.unanswered)
    }
}

impl<V: Shown> Held<V> {
    /// The object, when it is there.
    #[must_use]
    pub fn there(&self) -> Option<&Thing<V>> {
        match &self.known {
            Known::Present(thing) => Some(thing),
            Known::Unknown | Known::Absent => None,
        }
    }

    /// The object, when it is there and stays.
    #[must_use]
    pub fn staying(&self) -> Option<&Thing<V>> {
        self.there().filter(|thing| !thing.is_going())
    }

    /// Whether it is certainly not there, and no request of ours can make it appear.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        matches!(self.known, Known::Absent) && self.doubt_since_us.is_none()
    }

    /// Whether a view says what is not known yet.
    #[must_use]
    pub fn is_news(&self, view: &V) -> bool {
        let object = view.object();
        if self.gone_uids.contains(&object.uid) {
            return false;
        }
        match self.there() {
            Some(thing) if thing.uid == object.uid => match &thing.view {
                Some(known) => object.resource_version > thing.resource_version && !known.says_the_same(view),
                None => true,
            },
            Some(thing) => object.resource_version > thing.resource_version,
            None => true,
        }
    }

    /// An observation; says whether it was taken in.
    pub(super) fn seen(&mut self, at: At, view: &V) -> bool {
        let object = view.object();
        if self.gone_uids.contains(&object.uid) {
            return false;
        }
        match &mut self.known {
            Known::Present(thing) if thing.uid == object.uid => {
                if object.resource_version <= thing.resource_version && thing.view.is_some() {
                    return false;
                }
                thing.resource_version = thing.resource_version.max(object.resource_version);
                thing.seq = at.seq;
                thing.view = Some(view.clone());
            }
            Known::Present(thing) if object.resource_version < thing.resource_version => return false,
            known @ (Known::Unknown | Known::Absent | Known::Present(_)) => {
                // A name has one object at a time: the former one went and nobody told.
                if let Known::Present(former) = known {
                    let uid = former.uid.clone();
                    remember_gone(&mut self.gone_uids, &uid);
                }
                *known = Known::Present(thing(object, at, Some(view.clone())));
            }
        }
        self.name = Some(view.name().clone());
        if let Known::Present(thing) = &mut self.known
            && view.deleting()
        {
            thing.deleting_since_us.get_or_insert(at.time_us);
        }
        true
    }

    /// A write of ours showed it; that counts as observed, unless its uid is known gone or a newer one is known.
    pub(super) fn written(&mut self, at: At, object: &ObjectSeen) {
        if self.gone_uids.contains(&object.uid) {
            return;
        }
        match &mut self.known {
            Known::Present(thing) if thing.uid == object.uid => {
                thing.resource_version = thing.resource_version.max(object.resource_version);
            }
            Known::Present(thing) if thing.resource_version > object.resource_version => {}
            known @ (Known::Unknown | Known::Absent | Known::Present(_)) => {
                if let Known::Present(former) = known {
                    let uid = former.uid.clone();
                    remember_gone(&mut self.gone_uids, &uid);
                }
                *known = Known::Present(thing(object.clone(), at, None));
            }
        }
    }

    /// A uid is gone; says whether it was the one that is known.
    pub(super) fn gone(&mut self, uid: &Uid) -> bool {
        remember_gone(&mut self.gone_uids, uid);
        let known = self.there().is_some_and(|thing| thing.uid == *uid);
        if known {
            self.known = Known::Absent;
        }
        known
    }

    /// A create of ours was never answered.
    pub(super) fn doubt(&mut self, time_us: i64) {
        self.doubt_since_us = Some(time_us);
        if self.there().is_none() {
            self.known = Known::Unknown;
        }
    }

    /// A complete list was taken that would have shown it.
    pub(super) fn listed(&mut self) {
        if matches!(self.known, Known::Unknown) {
            self.known = Known::Absent;
        }
    }

    /// Our delete of it, if `step` is that.
    pub(super) fn delete_of(&mut self, step: Seq) -> Option<&mut Option<Delete>> {
        match &mut self.known {
            Known::Present(thing) => Some(&mut thing.delete).filter(|delete| delete.is_some_and(|delete| delete.step == step)),
            Known::Unknown | Known::Absent => None,
        }
    }

    /// Our delete of exactly this uid was decided.
    pub(super) fn deleting(&mut self, uid: &Uid, delete: Delete) {
        if let Known::Present(thing) = &mut self.known
            && thing.uid == *uid
        {
            thing.delete = Some(delete);
        }
    }
}

impl Held<ServiceSeen> {
    /// A write of ours made it be as one that is made.
    pub(super) fn put(&mut self, at: At, object: &ObjectSeen) {
        self.written(at, object);
        if let Known::Present(Thing { uid, view: Some(view), .. }) = &mut self.known
            && *uid == object.uid
        {
            view.as_made = true;
        }
    }
}

fn thing<V>(object: ObjectSeen, at: At, view: Option<V>) -> Thing<V> {
    let ObjectSeen { uid, resource_version } = object;
    Thing { uid, resource_version, seq: at.seq, view, deleting_since_us: None, delete: None }
}
