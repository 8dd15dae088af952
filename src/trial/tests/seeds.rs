//! Seeds that once broke, each with a sentence: they are played first.

/// The seed, and what it showed.
pub(super) const BROKE: &[(u64, &str)] = &[
    (5, "a host that was live, and whose name an app got again, was taken for live: the trials' gateway gave names twice"),
    (59, "nothing crashed in it, and hardly anything happened"),
    (138, "judge: a host that was reported failed, wanted again, and live since, was held to be failed for ever"),
    (229, "judge: a live host that its node had just lost was held to have ended, because its pod before that had"),
    (465, "judge: one answer without an app, which did not count, was taken for its withdrawal, and a true report for a void one"),
    (665, "judge: a stepped wall clock makes a pod on a lost node overdue after a restart"),
    (755, "judge: a pod whose node was cut off before it could say that the process runs was stuck, for all that anybody saw"),
    (1_672, "judge: whether an answer misses most apps depends on which the daemon knows"),
    (2_349, "judge: a host that failed, and was named live by a report from before that, need not come back"),
    (3_713, "judge: answers at once after each other, without an app, count once, and made a true report void"),
];
