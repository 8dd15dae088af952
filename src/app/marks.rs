//! Marks of what refuses or delays something in the table and in the plan, so that a test can say that each is reached. Nothing of
//! it is compiled into the program; a thread has its own, so that tests beside each other do not see each other's.

/// Notes that this place was reached, in a test.
macro_rules! mark {
    ($mark:literal) => {
        #[cfg(test)]
        $crate::app::marks::reach($mark);
        #[cfg(not(test))]
        const _: &str = $mark;
    };
    ($mark:expr) => {
        #[cfg(test)]
        $crate::app::marks::reach($mark);
    };
}

pub(super) use mark;

#[cfg(test)]
thread_local! {
    static REACHED: std::cell::RefCell<std::collections::BTreeSet<&'static str>> = const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// Notes that this place was reached.
#[cfg(test)]
pub(crate) fn reach(mark: &'static str) {
    REACHED.with_borrow_mut(|reached| reached.insert(mark));
}

/// What was reached on this thread since this was last asked.
#[cfg(test)]
pub(crate) fn taken() -> std::collections::BTreeSet<&'static str> {
    REACHED.with_borrow_mut(std::mem::take)
}

/// Every mark of the plan; the table's are its rules.
#[cfg(test)]
pub(crate) const OF_PLAN: &[&str] = &[
    "plan.not_listed",
    "decide.may_not_stop",
    "start.hindered",
    "start.losing_secret",
    "revive.no_fault_pause",
    "revive.last_words",
    "revive.hindered",
    "stop.last_words",
    "stop.awaiting_verdict",
    "stop.hindered",
    "fail.last_words",
    "bring.not_named",
    "bring.not_confirmed",
    "bring.stopped",
    "bring.has_pod",
    "bring.in_flight",
    "bring.hindered",
    "hindered.for_good",
    "hindered.refused",
    "hindered.unanswered",
    "hindered.name_held",
    "hindered.unsent",
    "clean.may_not_stop",
    "clean.in_flight",
    "clean.doubt_waits",
    "clean.secret_doubt_waits",
    "clean.hindered",
    "force.waits",
    "force.node_is_there",
    "stuck.unschedulable",
    "stuck.given_up",
];

/// Those of them that hardly any trial reaches, because too much would have to come together: stories do (`tests/marks.rs`).
#[cfg(test)]
pub(crate) const OF_STORIES: &[&str] =
    &["clean.doubt_waits", "force.node_is_there", "hindered.for_good", "hindered.name_held", "start.hindered", "start.losing_secret"];
