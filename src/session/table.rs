//! The decision table of a session (sessions.md, "Rules"): which steps it needs, from what is asked and what is there.
//!
//! Knows no step in flight, no pause and no record: `plan` is this table minus what is in flight or done.

use crate::events::kinds::session::{SessionDoing, SessionObject};

/// Whether an object is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// Certainly not.
    Absent,
    /// Nobody knows: a write of ours may have been carried out, or may still be.
    Doubtful,
    /// It is there and stays.
    There,
    /// It is a pod that has ended.
    Ended,
    /// It is being deleted, or was told to go.
    Going,
}

/// What is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Nothing.
    None,
    /// The pod alone.
    Suspend,
    /// Everything.
    Delete,
}

/// What the rows look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// A caller of this log ever asked for it.
    pub asked: bool,
    /// It is to run.
    pub wanted: bool,
    /// It is to go, before anything else.
    pub removal: Removal,
    /// It has been suspended for longer than a claim is retained.
    pub expired: bool,
    /// Its claim.
    pub claim: Is,
    /// Its pod.
    pub pod: Is,
    /// Its Service.
    pub service: Is,
    /// The Service that is there is not as one that is made.
    pub service_differs: bool,
}

impl Facts {
    /// It may be made: nothing is to go first.
    fn may_make(&self) -> bool {
        self.wanted && self.removal == Removal::None
    }

    /// Nobody wants it to run, and somebody once did.
    fn unwanted(&self) -> bool {
        self.asked && !self.wanted && self.removal == Removal::None
    }

    /// Nothing is built on it: whether it is there has to be found out.
    fn has_to_know(&self) -> bool {
        !self.wanted || self.removal != Removal::None
    }
}

/// What to do about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Make it.
    Make,
    /// Make it be as one that is made.
    Repair,
    /// Delete it.
    Remove,
    /// Read whether it is there, when nothing can come any more.
    Read,
}

impl What {
    /// The sort of step that does it.
    #[must_use]
    pub fn doing(self) -> SessionDoing {
        match self {
            Self::Make | Self::Repair => SessionDoing::Make,
            Self::Remove => SessionDoing::Remove,
            Self::Read => SessionDoing::Read,
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// With which object.
    pub object: SessionObject,
    /// What.
    pub what: What,
    /// The row that says so, by its stable name.
    pub rule: &'static str,
}

/// A row of the table: of each object the first that fits decides.
struct Row {
    rule: &'static str,
    object: SessionObject,
    fits: fn(&Facts) -> bool,
    what: What,
}

const fn row(rule: &'static str, object: SessionObject, fits: fn(&Facts) -> bool, what: What) -> Row {
    Row { rule, object, fits, what }
}

use SessionObject::{Claim, Pod, Service};

/// When no row fits there is nothing to do: what is going is waited for, and what is there stays.
const ROWS: &[Row] = &[
    row("session.ended", Pod, |f| f.pod == Is::Ended, What::Remove),
    row("session.suspended", Pod, |f| f.pod == Is::There && f.removal == Removal::Suspend, What::Remove),
    row("session.deleted", Pod, |f| f.pod == Is::There && f.removal == Removal::Delete, What::Remove),
    row("session.not_wanted", Pod, |f| f.pod == Is::There && f.unwanted(), What::Remove),
    row("session.pod", Pod, |f| f.may_make() && matches!(f.pod, Is::Absent | Is::Doubtful) && f.claim == Is::There, What::Make),
    row("session.doubt", Pod, |f| f.pod == Is::Doubtful && f.has_to_know(), What::Read),
    row("session.deleted", Claim, |f| f.claim == Is::There && f.removal == Removal::Delete, What::Remove),
    row("session.expired", Claim, |f| f.claim == Is::There && f.unwanted() && f.expired, What::Remove),
    row("session.claim", Claim, |f| f.may_make() && matches!(f.claim, Is::Absent | Is::Doubtful), What::Make),
    row("session.doubt", Claim, |f| f.claim == Is::Doubtful && f.has_to_know(), What::Read),
    row("session.deleted", Service, |f| f.service == Is::There && f.removal == Removal::Delete, What::Remove),
    row(
        "session.left_over",
        Service,
        |f| f.service == Is::There && f.unwanted() && f.claim == Is::Absent && f.pod == Is::Absent,
        What::Remove,
    ),
    row("session.service", Service, |f| f.may_make() && matches!(f.service, Is::Absent | Is::Doubtful), What::Make),
    row("session.service_differs", Service, |f| f.may_make() && f.service == Is::There && f.service_differs, What::Repair),
    row("session.doubt", Service, |f| f.service == Is::Doubtful && f.has_to_know(), What::Read),
];

/// What to do, in the order in which it is to be done: the claim comes first when it is made, and last when all goes.
#[must_use]
pub fn moves(facts: &Facts) -> Vec<Move> {
    decide(ROWS.iter(), facts)
}

fn decide<'a>(rows: impl Iterator<Item = &'a Row> + Clone, facts: &Facts) -> Vec<Move> {
    let order = if facts.removal == Removal::None { [Claim, Service, Pod] } else { [Pod, Service, Claim] };
    let first = |object: SessionObject| rows.clone().find(|row| row.object == object && (row.fits)(facts));
    order.into_iter().filter_map(first).map(|row| Move { object: row.object, what: row.what, rule: row.rule }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of facts that can be.
    fn all() -> Vec<Facts> {
        const OBJECT: [Is; 4] = [Is::Absent, Is::Doubtful, Is::There, Is::Going];
        let mut all = Vec::new();
        for bits in 0_u8..16 {
            let flag = |bit: u8| bits & (1 << bit) != 0;
            for removal in [Removal::None, Removal::Suspend, Removal::Delete] {
                for claim in OBJECT {
                    for service in OBJECT {
                        for pod in OBJECT.into_iter().chain([Is::Ended]) {
                            let facts = Facts {
                                asked: flag(0) || flag(1) || removal != Removal::None,
                                wanted: flag(1),
                                removal,
                                expired: flag(2),
                                claim,
                                pod,
                                service,
                                service_differs: flag(3),
                            };
                            all.push(facts);
                        }
                    }
                }
            }
        }
        all
    }

    #[test]
    fn a_claim_goes_only_by_a_delete_or_by_a_rule_of_retention() {
        for facts in all() {
            let removes = moves(&facts).into_iter().any(|one| one.object == Claim && one.what == What::Remove);
            let may = facts.removal == Removal::Delete || (facts.expired && facts.asked && !facts.wanted);
            assert!(!removes || may, "{facts:?}");
        }
    }

    #[test]
    fn b46_no_pod_is_made_before_the_old_one_is_gone_and_the_claim_stays() {
        for facts in all() {
            let makes = moves(&facts).into_iter().any(|one| one.object == Pod && one.what == What::Make);
            let may = facts.wanted
                && facts.removal == Removal::None
                && facts.claim == Is::There
                && matches!(facts.pod, Is::Absent | Is::Doubtful);
            assert_eq!(makes, may, "{facts:?}");
        }
    }

    #[test]
    fn what_is_only_found_is_nobodys_to_stop() {
        for facts in all().into_iter().filter(|facts| !facts.asked) {
            let moves = moves(&facts);
            assert!(moves.iter().all(|one| one.what == What::Read || one.rule == "session.ended"), "{facts:?}: {moves:?}");
        }
    }

    #[test]
    fn every_row_matters() {
        for row in ROWS {
            let others = ROWS.iter().filter(|other| !(other.rule == row.rule && other.object == row.object));
            let matters = all().iter().any(|facts| decide(others.clone(), facts) != moves(facts));
            assert!(matters, "{} of {:?}", row.rule, row.object);
        }
    }
}
