//! Network policies: what the server fills in and refuses. Pure.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::refusal::Cause;
use super::rules::{at, entries, key_causes, label_value_causes, list, list_mut, text};

/// The pod selector, the policy types, the protocol of ports.
pub(super) fn defaults(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if spec["podSelector"].is_null() {
        spec["podSelector"] = json!({});
    }
    if list(spec, &["policyTypes"]).is_empty() {
        let both = !list(spec, &["egress"]).is_empty();
        spec["policyTypes"] = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
    for direction in ["ingress", "egress"] {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports").filter(|port| port["protocol"].is_null()) {
                port["protocol"] = json!("TCP");
            }
        }
    }
}

/// Types, ports, peers.
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = selector_causes("spec.podSelector", &spec["podSelector"]);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, &[direction]).iter().enumerate() {
            for (port_index, port) in list(rule, &["ports"]).iter().enumerate() {
                port_causes(&format!("spec.{direction}[{index}].ports[{port_index}]"), port, &mut causes);
            }
            for (peer_index, peer) in list(rule, &[peers]).iter().enumerate() {
                peer_causes(&format!("spec.{direction}[{index}].{peers}[{peer_index}]"), peer, &mut causes);
            }
        }
    }
    for (index, kind) in list(spec, &["policyTypes"]).iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !["Ingress", "Egress"].contains(&kind) {
            causes.push(Cause::unsupported(&format!("spec.policyTypes[{index}]"), kind, &["Ingress", "Egress"]));
        }
    }
    causes
}

fn port_causes(field: &str, port: &Value, causes: &mut Vec<Cause>) {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    let protocol = text(port, &["protocol"]);
    if !protocol.is_empty() && !PROTOCOLS.contains(&protocol) {
        causes.push(Cause::unsupported(&format!("{field}.protocol"), protocol, &PROTOCOLS));
    }
    let number = port["port"].as_i64();
    if let Some(number) = number.filter(|number| !(1..=65_535).contains(number)) {
        causes.push(Cause::invalid(&format!("{field}.port"), &number.to_string(), "must be between 1 and 65535, inclusive"));
    }
    if let Some(name) = port["port"].as_str() {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.len() > 15 || name.is_empty() || !name.bytes().all(allowed) {
            let why = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
            causes.push(Cause::invalid_text(&format!("{field}.port"), name, why));
        }
    }
    if let Some(end) = port["endPort"].as_i64() {
        match number {
            None => {
                let why = "may not be specified when `port` is not specified";
                causes.push(Cause::invalid(&format!("{field}.endPort"), &end.to_string(), why));
            }
            Some(number) if end < number => {
                let why = "must be greater than or equal to `port`";
                causes.push(Cause::invalid(&format!("{field}.endPort"), &number.to_string(), why));
            }
            Some(_) => {}
        }
    }
}

fn peer_causes(field: &str, peer: &Value, causes: &mut Vec<Cause>) {
    let selectors = ["podSelector", "namespaceSelector"].map(|kind| peer.get(kind));
    match (peer.get("ipBlock"), selectors.iter().flatten().count()) {
        (None, 0) => causes.push(Cause::required(field, "must specify a peer")),
        (Some(_), 1..) => causes.push(Cause::forbidden(field, "may not specify both ipBlock and another peer")),
        (Some(block), 0) => block_causes(&format!("{field}.ipBlock"), block, causes),
        (None, 1..) => {
            for kind in ["podSelector", "namespaceSelector"] {
                causes.extend(selector_causes(&format!("{field}.{kind}"), at(peer, &[kind])));
            }
        }
    }
}

fn block_causes(field: &str, block: &Value, causes: &mut Vec<Cause>) {
    let cidr = text(block, &["cidr"]);
    if cidr.is_empty() {
        causes.push(Cause::required(&format!("{field}.cidr"), ""));
        return;
    }
    let outer = match Cidr::parse(cidr) {
        Ok(outer) => outer,
        Err(why) => {
            causes.push(Cause::invalid_text(&format!("{field}.cidr"), cidr, why));
            return;
        }
    };
    for (index, except) in list(block, &["except"]).iter().enumerate() {
        let (field, except) = (format!("{field}.except[{index}]"), except.as_str().unwrap_or_default());
        match Cidr::parse(except) {
            Ok(inner) if outer.strictly_contains(&inner) => {}
            Ok(_) => causes.push(Cause::invalid_text(&field, except, "must be a strict subset of `cidr`")),
            Err(why) => causes.push(Cause::invalid_text(&field, except, why)),
        }
    }
}

fn selector_causes(field: &str, selector: &Value) -> Vec<Cause> {
    let field = format!("{field}.matchLabels");
    let pairs = entries(selector, &["matchLabels"]);
    let both = |(key, value): (&String, &Value)| {
        [key_causes(&field, key), label_value_causes(&field, value.as_str().unwrap_or_default())].concat()
    };
    pairs.flat_map(both).collect()
}

/// A network: its address's bits, left-aligned in 128, its length, and whether it is IPv6.
struct Cidr {
    bits: u128,
    length: u32,
    six: bool,
}

impl Cidr {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const WORDS: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        let (address, length) = text.split_once('/').ok_or(WORDS)?;
        let (bits, six) = match address.parse::<IpAddr>().map_err(|_| WORDS)? {
            IpAddr::V4(four) => (u128::from(four.to_bits()) << 96, false),
            IpAddr::V6(address) => (address.to_bits(), true),
        };
        let length: u32 = length.parse().map_err(|_| WORDS)?;
        if length > if six { 128 } else { 32 } {
            return Err(WORDS);
        }
        if bits & !mask(length) != 0 {
            return Err("must not have bits set beyond the prefix length");
        }
        Ok(Self { bits, length, six })
    }

    fn strictly_contains(&self, inner: &Self) -> bool {
        self.six == inner.six && inner.length > self.length && inner.bits & mask(self.length) == self.bits
    }
}

fn mask(length: u32) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - length) }
}
