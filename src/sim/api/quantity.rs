//! Resource quantities: parsing, the check of requests against limits, and the quality-of-service class. Pure.

use serde_json::Value;

use super::refusal::Cause;
use super::rules::{at, entries, list};

/// What a quantity has to look like, in the API server's words.
const WORDS: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// A quantity in thousandths; `None` when it is none or does not fit.
#[must_use]
pub(super) fn parse(text: &str) -> Option<i128> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let milli: i128 = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(milli)?.checked_add(fraction.checked_mul(milli)? / scale)
}

/// Why a pod holds a quantity that is none: such a body is not understood at all.
pub(super) fn malformed(pod: &Value) -> Option<&'static str> {
    let containers = ["initContainers", "containers"].into_iter().flat_map(|kind| list(pod, &["spec", kind]));
    let amounts = containers.flat_map(|one| ["limits", "requests"].into_iter().flat_map(move |kind| entries(one, &["resources", kind])));
    let sizes = list(pod, &["spec", "volumes"]).iter().map(|volume| at(volume, &["emptyDir", "sizeLimit"]));
    let mut texts = amounts.map(|(_, amount)| amount).chain(sizes).filter_map(Value::as_str);
    texts.any(|text| parse(text).is_none()).then_some(WORDS)
}

/// What is wrong with a container's `resources`.
#[must_use]
pub(super) fn validate(field: &str, resources: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for kind in ["limits", "requests"] {
        for (name, value) in entries(resources, &[kind]) {
            let field = format!("{field}.{kind}[{name}]");
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match parse(&text) {
                // Such a body was refused before.
                None => {}
                Some(amount) if amount < 0 => {
                    causes.push(Cause::invalid_text(&field, &text, "must be greater than or equal to 0"));
                }
                Some(amount) if kind == "requests" => {
                    let limit = at(resources, &["limits", name]).as_str();
                    if let Some(limit) = limit.filter(|limit| parse(limit).is_some_and(|limit| limit < amount)) {
                        let why = format!("must be less than or equal to {name} limit of {limit}");
                        causes.push(Cause::invalid_text(&format!("{}.requests", field_of(&field)), &text, &why));
                    }
                }
                Some(_) => {}
            }
        }
    }
    causes
}

fn field_of(field: &str) -> &str {
    field.split(".requests").next().unwrap_or(field)
}

/// The class a kubelet evicts by.
#[must_use]
pub(super) fn class_of(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = list(spec, &["initContainers"]).iter().chain(list(spec, &["containers"])).collect();
    let amount = |container: &Value, kind: &str, name: &str| {
        at(container, &["resources", kind, name]).as_str().and_then(parse).filter(|amount| *amount > 0)
    };
    let named = |container: &Value| {
        ["cpu", "memory"].iter().any(|name| ["limits", "requests"].iter().any(|kind| amount(container, kind, name).is_some()))
    };
    let full = |container: &Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && limit == amount(container, "requests", name)
        })
    };
    if !containers.iter().any(|container| named(container)) {
        "BestEffort"
    } else if containers.iter().all(|container| full(container)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
