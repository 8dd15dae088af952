//! Which layer a file is in (DESIGN.md, "Layers"): the table, and nothing else.

/// Layers by the beginning of a path; the longest that fits counts.
const LAYERS: &[(&str, u8)] = &[
    ("src/ids.rs", 0),
    ("src/clock.rs", 0),
    ("src/config/", 0),
    // The settings as records.
    ("src/config/force.rs", 1),
    ("src/events/", 2),
    ("src/events/kinds/", 1),
    ("src/events/record.rs", 1),
    ("src/events/codec.rs", 1),
    ("src/events/block.rs", 1),
    ("src/events/frame.rs", 1),
    ("src/events/tree.rs", 1),
    ("src/proof/", 1),
    ("src/app/", 1),
    ("src/session/", 1),
    ("src/subject/", 1),
    ("src/timeline", 1),
    ("src/kube/", 2),
    ("src/kube/convert.rs", 1),
    ("src/kube/manifest.rs", 1),
    ("src/kube/throttle.rs", 1),
    ("src/kube/environment.rs", 1),
    ("src/kube/labels.rs", 1),
    ("src/kube/redact.rs", 1),
    ("src/kube/view.rs", 1),
    ("src/kube/install.rs", 1),
    ("src/kube/policy.rs", 1),
    ("src/kube/session/", 1),
    // How a watch reads them.
    ("src/kube/session/decode.rs", 2),
    ("src/gateway/", 2),
    ("src/gateway/judge.rs", 1),
    ("src/gateway/protocol.rs", 1),
    ("src/gateway/report.rs", 1),
    ("src/gateway/withdrawals.rs", 1),
    ("src/sim/", 2),
    // It writes, and counts what the vocabulary names.
    ("src/telemetry.rs", 2),
    ("src/postmortem/", 2),
    ("src/postmortem/about.rs", 1),
    ("src/postmortem/rules.rs", 1),
    ("src/feed/", 2),
    ("src/actors/", 3),
    ("src/http/", 4),
    ("src/run", 5),
    // It runs the whole daemon, as a command does.
    ("src/trial/", 5),
    // A command runs the daemon, or a part of it; nothing else knows that there is a command line.
    ("src/cli/", 6),
    ("src/main.rs", 6),
    ("src/lib.rs", 6),
];

/// The layer in which everything is a synchronous function of its arguments.
pub(super) const PURE: u8 = 1;

/// A file's layer; `None` when the table does not know it.
pub(super) fn layer(file: &str) -> Option<u8> {
    LAYERS.iter().filter(|(begin, _)| file.starts_with(begin)).max_by_key(|(begin, _)| begin.len()).map(|(_, layer)| *layer)
}

/// Files that go out of their layer, each with the reason.
pub(super) const EXCEPTIONS: &[(&str, &str, &str)] = &[];
