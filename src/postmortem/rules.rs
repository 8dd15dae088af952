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
];

/// When a rule applies, in words; `None` for a rule of a newer version.
#[must_use]
pub fn says(rule: &str) -> Option<&'static str> {
    RULES.iter().find(|(name, _)| *name == rule).map(|(_, when)| *when)
}
