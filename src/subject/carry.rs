//! Between what a fold knows and the form in which it is stored: a field that is missing in one of them does not compile.

use std::collections::BTreeMap;

use super::hindrance::{Hindered, Hindrance};
use super::pod::{Delete, End, Pod, Tail};
use crate::events::kinds::carried::{CarriedDelete, CarriedEnd, CarriedHindered, CarriedHindrance, CarriedPod, CarriedTail};
use crate::events::kinds::pod::{Disruption, NodeReady, PodSeen};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::{EndCause, Stage};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

/// What has a stored form.
pub trait Carry {
    /// That form.
    type Kept;

    /// As it is stored.
    fn keep(&self) -> Self::Kept;

    /// From what was stored.
    fn back(kept: Self::Kept) -> Self;
}

/// Types that are stored as they are.
macro_rules! as_it_is {
    ($($kind:ty),*) => { $(
        impl $crate::subject::carry::Carry for $kind {
            type Kept = Self;
            fn keep(&self) -> Self {
                self.clone()
            }
            fn back(kept: Self) -> Self {
                kept
            }
        }
    )* };
}
pub(crate) use as_it_is;

as_it_is!(bool, u32, u64, i32, i64, (u32, u32), Seq, HostName, PackageDigest, Uid, Word);
as_it_is!(Disruption, NodeReady, PodSeen, EndCause, Stage, TailOf);

impl<T: Carry> Carry for Option<T> {
    type Kept = Option<T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.as_ref().map(T::keep)
    }
    fn back(kept: Self::Kept) -> Self {
        kept.map(T::back)
    }
}

impl<T: Carry> Carry for Vec<T> {
    type Kept = Vec<T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.iter().map(T::keep).collect()
    }
    fn back(kept: Self::Kept) -> Self {
        kept.into_iter().map(T::back).collect()
    }
}

impl<K: Clone + Ord, T: Carry> Carry for BTreeMap<K, T> {
    type Kept = BTreeMap<K, T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.iter().map(|(key, value)| (key.clone(), value.keep())).collect()
    }
    fn back(kept: Self::Kept) -> Self {
        kept.into_iter().map(|(key, value)| (key, T::back(value))).collect()
    }
}

/// Structs that are stored field by field; one that is left out is its default again.
macro_rules! by_field {
    ($($own:ident $((without $left:ident))? = $kept:ident { $($field:ident),* $(,)? })*) => { $(
        impl $crate::subject::carry::Carry for $own {
            type Kept = $kept;
            fn keep(&self) -> $kept {
                let Self { $($field,)* $($left: _,)? } = self;
                $kept { $($field: $crate::subject::carry::Carry::keep($field)),* }
            }
            fn back(kept: $kept) -> Self {
                let $kept { $($field),* } = kept;
                Self { $($field: $crate::subject::carry::Carry::back($field),)* $($left: Default::default(),)? }
            }
        }
    )* };
}
pub(crate) use by_field;

by_field! {
    Pod = CarriedPod {
        uid, resource_version, seq, view, seen_us, stage, stage_since_us, disruption, deleting_since_us, delete, end, restarts, different
    }
    Delete = CarriedDelete { step, revive, forced, unanswered }
    End = CarriedEnd { seq, uid, container, restart, cause, exit_code, signal, reason, stage, node, at_us }
    Hindrance = CarriedHindrance { seq, what, times, first_us, since_us }
    Tail = CarriedTail { incarnation, settled, kept }
}

impl Carry for Hindered {
    type Kept = CarriedHindered;
    fn keep(&self) -> CarriedHindered {
        match *self {
            Self::Refused(refusal) => CarriedHindered::Refused(refusal),
            Self::NameHeld => CarriedHindered::NameHeld,
            Self::Unanswered => CarriedHindered::Unanswered,
            Self::Unsent => CarriedHindered::Unsent,
        }
    }
    fn back(kept: CarriedHindered) -> Self {
        match kept {
            CarriedHindered::Refused(refusal) => Self::Refused(refusal),
            CarriedHindered::NameHeld => Self::NameHeld,
            CarriedHindered::Unanswered => Self::Unanswered,
            CarriedHindered::Unsent => Self::Unsent,
        }
    }
}
