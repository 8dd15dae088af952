//! Leases: what the server refuses. Pure.

use serde_json::Value;

use super::refusal::Cause;

/// Durations and counts.
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &seconds.to_string(), "must be greater than 0"));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|count| *count < 0) {
        causes.push(Cause::invalid("spec.leaseTransitions", &count.to_string(), "must be greater than or equal to 0"));
    }
    causes
}
