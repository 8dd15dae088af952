//! Claims: what the server fills in and refuses. Pure. No volume is ever bound here: a class that waits for its first pod.

use serde_json::{Value, json};

use super::quantity;
use super::refusal::Cause;
use super::rules::{at, list, set, text};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Fills in a claim.
pub(super) fn defaults(object: &mut Value) {
    if object["spec"].is_object() {
        set(&mut object["spec"], "volumeMode", json!("Filesystem"));
    }
}

/// The status of a new claim.
#[must_use]
pub(super) fn first_status(_object: &Value) -> Value {
    json!({"phase": "Pending"})
}

/// Access modes and the size.
#[must_use]
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let modes = list(object, &["spec", "accessModes"]);
    if modes.is_empty() {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !MODES.contains(mode)) {
        causes.push(Cause::unsupported("spec.accessModes", mode, &MODES));
    }
    let size = at(object, &["spec", "resources", "requests", "storage"]);
    match size.as_str().and_then(quantity::parse) {
        None => causes.push(Cause::required("spec.resources[storage]", "")),
        Some(amount) if amount <= 0 => {
            let value = text(object, &["spec", "resources", "requests", "storage"]);
            causes.push(Cause::invalid_text("spec.resources[storage]", value, "must be greater than zero"));
        }
        Some(_) => {}
    }
    causes
}

/// Of a claim's spec only the size may change.
#[must_use]
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<Cause> {
    let without_size = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        spec["resources"]["requests"]["storage"] = Value::Null;
        spec
    };
    if without_size(old) == without_size(new) {
        return Vec::new();
    }
    let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    vec![Cause::forbidden("spec", why)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(mode: &str, size: &str) -> Value {
        let mut claim = json!({"spec": {"accessModes": [mode], "resources": {"requests": {"storage": size}}}});
        defaults(&mut claim);
        claim
    }

    #[test]
    fn b45_a_claim_keeps_its_spec_but_for_the_size() {
        let one = claim("ReadWriteOnce", "1Gi");
        assert_eq!((validate(&one).len(), &one["spec"]["volumeMode"]), (0, &json!("Filesystem")));
        assert_eq!(validate_update(&one, &claim("ReadWriteOnce", "2Gi")).len(), 0);
        assert_eq!(validate_update(&one, &claim("ReadWriteMany", "1Gi")).len(), 1);
        assert_eq!(validate(&claim("ReadSometimes", "1Gi")).len(), 1);
        assert_eq!(validate(&claim("ReadWriteOnce", "0")).len(), 1);
        assert_eq!(validate(&json!({"spec": {}})).len(), 2);
    }
}
