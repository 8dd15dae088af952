//! What a setting's value may be: one rule a kind of value, each able to say itself in words. Pure.

use serde_json::Value;

use super::address::{base_url, gateway_url, is_cidr, listen_address};
use crate::ids::{SessionId, is_dns_label};

/// What is allowed. Text that is empty is allowed everywhere but in lists: what must not be empty is said by `check`, because
/// `config print` and `plan` need no gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One line of text.
    Text,
    /// A path.
    Path,
    /// A DNS label.
    Label,
    /// A DNS label, or nothing.
    LabelOrEmpty,
    /// A DNS name.
    Domain,
    /// A DNS name, or nothing.
    DomainOrEmpty,
    /// A listen address.
    Listen,
    /// A base URL.
    Url,
    /// The gateway's base URL.
    Gateway,
    /// A Kubernetes quantity.
    Quantity,
    /// A list of words.
    Words,
    /// A list of DNS labels.
    Labels,
    /// A list of `key=value`.
    Pairs,
    /// A list of tolerations.
    Tolerations,
    /// A list of addresses.
    Addresses,
    /// A list of address blocks.
    Blocks,
    /// A list of ports.
    Ports,
    /// What precedes a session's id in a name.
    Prefix,
}

impl Rule {
    /// Whether it is a list.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Words | Self::Labels | Self::Pairs | Self::Tolerations | Self::Addresses | Self::Blocks | Self::Ports)
    }

    /// What is allowed, in words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Number(least, most) => format!("a whole number from {least} to {most}"),
            Self::OneOf(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
            Self::Text => "one line of text".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Label | Self::LabelOrEmpty => "a DNS label: at most 63 of a-z, 0-9 and -, with a letter or digit at both ends".to_owned(),
            Self::Domain | Self::DomainOrEmpty => "a DNS name of at most 253 characters".to_owned(),
            Self::Listen => "an address and a port, such as 127.0.0.1:7070 or [::1]:7070".to_owned(),
            Self::Url => "http or https, a host, and at most a path; no user, no query".to_owned(),
            Self::Gateway => "https and a host, or http to a loopback address or to a Service NAME.NAMESPACE.svc".to_owned(),
            Self::Quantity => "a Kubernetes quantity, such as 256Mi or 500m".to_owned(),
            Self::Words => "a list of text".to_owned(),
            Self::Labels => "a list of DNS labels".to_owned(),
            Self::Pairs => "a list of KEY=VALUE, each a Kubernetes label's".to_owned(),
            Self::Tolerations => "a list of KEY[=VALUE]:EFFECT, the effect NoSchedule, PreferNoSchedule or NoExecute".to_owned(),
            Self::Addresses => "a list of one to three IP addresses".to_owned(),
            Self::Blocks => "a list of address blocks, such as 10.0.0.0/8".to_owned(),
            Self::Ports => "a list of ports from 1 to 65535".to_owned(),
            Self::Prefix => format!("at most {PREFIX_MAX} of a-z, 0-9 and -, beginning with a letter"),
        }
    }

    /// Whether the value is allowed.
    #[must_use]
    pub fn allows(self, value: &Value) -> bool {
        match self {
            Self::Number(least, most) => value.as_u64().is_some_and(|number| (least..=most).contains(&number)),
            Self::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Self::Words => all(value, |text| !text.contains('\0')),
            Self::Labels => all(value, |text| is_dns_label(text, 63)),
            Self::Pairs => all(value, is_pair),
            Self::Tolerations => all(value, is_toleration),
            Self::Addresses => {
                // A pod takes three name servers at most.
                value.as_array().is_some_and(|list| (1..=3).contains(&list.len()))
                    && all(value, |text| text.parse::<std::net::IpAddr>().is_ok())
            }
            Self::Blocks => all(value, is_cidr),
            Self::Ports => {
                value.as_array().is_some_and(|list| list.iter().all(|port| port.as_u64().is_some_and(|port| (1..=65_535).contains(&port))))
            }
            Self::Text
            | Self::Path
            | Self::Label
            | Self::LabelOrEmpty
            | Self::Domain
            | Self::DomainOrEmpty
            | Self::Listen
            | Self::Url
            | Self::Gateway
            | Self::Quantity
            | Self::Prefix => value.as_str().is_some_and(|text| text.is_empty() || self.allows_text(text)),
        }
    }

    fn allows_text(self, text: &str) -> bool {
        match self {
            Self::Label | Self::LabelOrEmpty => is_dns_label(text, 63),
            Self::Domain | Self::DomainOrEmpty => is_dns_name(text),
            Self::Listen => listen_address(text).is_ok(),
            Self::Url => base_url(text).is_ok(),
            Self::Gateway => gateway_url(text).is_ok(),
            Self::Quantity => is_quantity(text),
            Self::Prefix => is_prefix(text),
            Self::Text
            | Self::Path
            | Self::Number(..)
            | Self::OneOf(_)
            | Self::Words
            | Self::Labels
            | Self::Pairs
            | Self::Tolerations
            | Self::Addresses
            | Self::Blocks
            | Self::Ports => !text.chars().any(char::is_control),
        }
    }
}

fn all(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(|item| item.as_str().is_some_and(&fits)))
}

/// The longest prefix: a Service's name is a label that begins with a letter, and holds the longest id besides.
const PREFIX_MAX: usize = 63 - SessionId::MAX;

fn is_prefix(text: &str) -> bool {
    text.len() <= PREFIX_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// A DNS subdomain: labels between dots.
#[must_use]
pub fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| is_dns_label(label, 63))
}

/// A label's name or value: at most 63 of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_label_part(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A label's key: a name, or `domain/name`.
fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_dns_name(domain) && is_label_part(name),
        None => is_label_part(text),
    }
}

fn is_pair(text: &str) -> bool {
    text.split_once('=').is_some_and(|(key, value)| is_label_key(key) && (value.is_empty() || is_label_part(value)))
}

fn is_toleration(text: &str) -> bool {
    let Some((what, effect)) = text.rsplit_once(':') else { return false };
    matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") && (is_label_key(what) || is_pair(what))
}

/// A positive Kubernetes quantity: digits, at most one point, and a suffix.
fn is_quantity(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let positive = number.parse::<f64>().is_ok_and(|number| number > 0.0 && number.is_finite());
    let suffixes = ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    positive && number.len() <= 18 && suffixes.contains(&suffix)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_kubernetes_would_refuse_is_refused_here() {
        for good in ["256Mi", "500m", "1", "0.5", "1.5Gi", "3Gi"] {
            assert!(is_quantity(good), "{good}");
        }
        for evil in ["", "Mi", "-1Gi", "1mb", "0", "1e", "1..5", "256 Mi", "∞"] {
            assert!(!is_quantity(evil), "{evil}");
        }
        for good in ["a=b", "example.org/a=b", "a=", "pool=gvisor"] {
            assert!(is_pair(good), "{good}");
        }
        for evil in ["a", "=b", "a/b/c=d", "-a=b", "a=-b", "a=b,c=d", "a=b c"] {
            assert!(!is_pair(evil), "{evil}");
        }
        for good in ["gvisor:NoSchedule", "a=b:NoExecute", "example.org/a=b:PreferNoSchedule"] {
            assert!(is_toleration(good), "{good}");
        }
        for evil in ["gvisor", "gvisor:", "gvisor:noschedule", ":NoSchedule"] {
            assert!(!is_toleration(evil), "{evil}");
        }
    }

    #[test]
    fn a_number_is_within_its_bounds() {
        let rule = Rule::Number(1, 10);
        for (value, allowed) in [
            (json!(1), true),
            (json!(10), true),
            (json!(0), false),
            (json!(11), false),
            (json!(-1), false),
            (json!(1.5), false),
            (json!("1"), false),
            (json!(true), false),
        ] {
            assert_eq!(rule.allows(&value), allowed, "{value}");
        }
    }

    #[test]
    fn b32_a_prefix_leaves_room_for_the_longest_id() {
        for good in ["pi-session-", "s", "a12345678901234567890ab"] {
            assert!(Rule::Prefix.allows(&json!(good)), "{good}");
        }
        for evil in ["-s", "1s", "S-", "s_", "a12345678901234567890abc", "s."] {
            assert!(!Rule::Prefix.allows(&json!(evil)), "{evil}");
        }
    }

    #[test]
    fn a_pod_takes_one_to_three_resolvers() {
        assert!(!Rule::Addresses.allows(&json!([])));
        assert!(Rule::Addresses.allows(&json!(["1.1.1.1", "::1", "9.9.9.9"])));
        assert!(!Rule::Addresses.allows(&json!(["1.1.1.1", "::1", "9.9.9.9", "8.8.8.8"])));
        assert!(!Rule::Addresses.allows(&json!(["dns.example.org"])));
    }
}
