//! Services: what the server fills in and refuses. Pure: an address comes from the name, which is as good as any that is free.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::refusal::Cause;
use super::rules::{list, list_mut, set, text};

const NAME_WORDS: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
                          and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                          '[a-z]([-a-z0-9]*[a-z0-9])?')";
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Fills in a Service.
pub(super) fn defaults(object: &mut Value) {
    let address = address(&format!("{}/{}", text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"])));
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "internalTrafficPolicy", json!("Cluster"));
    set(spec, "ipFamilyPolicy", json!("SingleStack"));
    set(spec, "ipFamilies", json!(["IPv4"]));
    set(spec, "clusterIP", json!(address));
    let own = spec["clusterIP"].clone();
    set(spec, "clusterIPs", json!([own]));
    for port in list_mut(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
}

/// The status of a new Service.
#[must_use]
pub(super) fn first_status(_object: &Value) -> Value {
    json!({"loadBalancer": {}})
}

/// An address of the Services' network, 10.96.0.0/12, from a name.
fn address(name: &str) -> String {
    let hash = crc32fast::hash(name.as_bytes());
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 96, 0, 0)) | (hash & 0x000f_ffff)).to_string()
}

/// Name, type, ports.
#[must_use]
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, &["metadata", "name"]);
    let is_label = crate::ids::is_dns_label(name, 63) && name.starts_with(|c: char| c.is_ascii_lowercase());
    if !is_label {
        let why = if name.len() > 63 { "must be no more than 63 characters" } else { NAME_WORDS };
        causes.push(Cause::invalid_text("metadata.name", name, why));
    }
    let spec = &object["spec"];
    let kind = text(spec, &["type"]);
    if !TYPES.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", kind, &TYPES));
    }
    let ports = list(spec, &["ports"]);
    if ports.is_empty() && kind != "ExternalName" && text(spec, &["clusterIP"]) != "None" {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        for field in ["port", "targetPort"] {
            if let Some(number) = port[field].as_i64().filter(|number| !(1..=65_535).contains(number)) {
                let field = format!("spec.ports[{index}].{field}");
                causes.push(Cause::invalid(&field, &number.to_string(), "must be between 1 and 65535, inclusive"));
            }
        }
        if ports.len() > 1 && text(port, &["name"]).is_empty() {
            causes.push(Cause::required(&format!("spec.ports[{index}].name"), ""));
        }
    }
    causes
}

/// The address never changes.
#[must_use]
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<Cause> {
    if old["spec"]["clusterIP"] == new["spec"]["clusterIP"] || old["spec"]["type"] != new["spec"]["type"] {
        return Vec::new();
    }
    vec![Cause::invalid_text("spec.clusterIPs[0]", text(new, &["spec", "clusterIP"]), "may not change once set")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, port: i64) -> Value {
        let mut service = json!({"metadata": {"namespace": "apps", "name": name}, "spec": {"ports": [{"port": port}]}});
        defaults(&mut service);
        service
    }

    #[test]
    fn a_service_gets_an_address_and_keeps_it() {
        let one = service("s1", 8787);
        assert_eq!((validate(&one).len(), &one["spec"]["ports"][0]["targetPort"]), (0, &json!(8787)));
        let mut moved = one.clone();
        moved["spec"]["clusterIP"] = json!("10.96.0.1");
        assert_eq!((validate_update(&one, &one).len(), validate_update(&one, &moved).len()), (0, 1));
    }

    #[test]
    fn b32_a_services_name_begins_with_a_letter() {
        for (name, faults) in [("s1", 0), ("1s", 1), ("S", 1), ("s.", 1)] {
            assert_eq!(validate(&service(name, 1)).len(), faults, "{name}");
        }
        assert_eq!(validate(&service(&"s".repeat(64), 1)).len(), 1);
        assert_eq!(validate(&service("s", 70_000)).len(), 2, "the port, and the one that it is in the pod");
    }
}
