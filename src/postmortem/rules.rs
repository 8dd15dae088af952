//! The rules of the plan in a sentence each (docs/rules.md has the whole of them). Pure.

/// Every rule by its stable name, and when it applies.
pub const RULES: &[(&str, &str)] = &[
    ("wanted.failed", "the gateway says that the wanted host failed, or a verdict does"),
    ("wanted.absent", "the wanted host has no pod and has not ended"),
    ("wanted.deleting", "the wanted host's pod is being deleted"),
    ("wanted.no_fault", "the wanted host ended by no fault of its own"),
    ("wanted.exited", "the wanted host ended by itself and never was live"),
    ("wanted.own_exit", "the wanted host was live, ended by itself, and may be revived once more"),
    ("wanted.keeps_exiting", "the wanted host was live and ended by itself too often"),
    ("wanted.serves", "the wanted host serves and is not live yet"),
    ("wanted.never_registered", "the wanted host ran and did not register in time"),
    ("former.deleting", "the former host's pod is being deleted"),
    ("former.replaced", "the former host ended, and the wanted one serves"),
    ("former.no_fault", "the former host carries the traffic and ended by no fault of its own"),
    ("former.own_exit", "the former host carries the traffic, ended by itself, and may be revived once more"),
    ("former.keeps_exiting", "the former host ended by itself too often"),
    ("stop.not_kept", "the pod is neither the wanted host's nor the former one's, or its row does not keep it"),
    ("stop.withdrawn", "the app is withdrawn: enough answers of the gateway left it out"),
    ("bring.start", "a start is under way, and this is its next step"),
    ("bring.revive", "a revive is under way, and this is its next step"),
    ("wanted.refused", "a step of a host that is not live was refused for good"),
    ("stop.wanted_again", "the stop was not sent yet, and the host is wanted again"),
    ("replace.different", "a pod of ours has the host's name, is not as it would be made, and never was live"),
    ("force.node_not_ready", "the pod has been terminating too long on a node that is not ready or gone"),
    ("clean.doubt", "a create was never answered, and its host is not wanted any more"),
    ("clean.secret", "a host that is not wanted and has no pod has a Secret"),
    ("session.claim", "the session is wanted, nothing is to go first, and there is no claim or it is doubtful"),
    ("session.service", "the session is wanted, nothing is to go first, and there is no Service or it is doubtful"),
    ("session.service_differs", "the session is wanted, and its Service is not as one made now would be"),
    ("session.pod", "the session is wanted, its claim is there and stays, and no pod is there"),
    ("session.ended", "the session's pod has ended"),
    ("session.suspended", "the session is to be suspended, and its pod is there"),
    ("session.deleted", "the session is to be deleted, and its pod, Service or claim is there"),
    ("session.not_wanted", "the session was asked for and is not wanted any more, and its pod is there"),
    ("session.expired", "the session has been suspended and unused for longer than it is retained"),
    ("session.left_over", "the session is not wanted, and its Service is there without pod and claim"),
    ("session.doubt", "an object is doubtful, nothing is to be made of it, and the server had its time"),
    ("session.taken_back", "a step that makes something was not sent yet, and that is not to be made any more"),
    ("session.force", "the pod has been terminating for longer than the call, or the setting, says"),
    ("session.refused", "an object of the session was refused for good"),
    ("session.other_tenant", "the claim that is there bears another tenant's label"),
    ("session.too_long", "the session is wanted and has not been ready for too long"),
];

/// When a rule applies, in words; `None` for a rule of a newer version.
#[must_use]
pub fn says(rule: &str) -> Option<&'static str> {
    RULES.iter().find(|(name, _)| *name == rule).map(|(_, when)| *when)
}
