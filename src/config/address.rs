//! Where things are: URLs and listen addresses as settings write them. Pure: resolves no name.

use std::net::{IpAddr, SocketAddr};

use http::Uri;

/// A base URL, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayUrl {
    /// Without a slash at its end.
    pub base: String,
    /// Its host: a name or an address, without brackets.
    pub host: String,
}

/// What a host in a URL is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// This machine.
    Loopback,
    /// A Service's name, which only the cluster's DNS knows.
    Cluster,
    /// Anything else.
    Far,
}

/// What a host name or address is, by its form alone. A name without a dot is far: who answers to it depends on where it is
/// asked.
#[must_use]
pub fn nearness(host: &str) -> Nearness {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = name.parse::<IpAddr>() {
        return if address.is_loopback() { Nearness::Loopback } else { Nearness::Far };
    }
    let labels: Vec<&str> = name.split('.').collect();
    if name == "localhost" {
        Nearness::Loopback
    } else if name.ends_with(".cluster.local") || (labels.len() == 3 && labels.last() == Some(&"svc")) {
        Nearness::Cluster
    } else {
        Nearness::Far
    }
}

/// Whether public resolvers cannot know the name: a Service's, in whatever domain the cluster has, or one without a dot.
#[must_use]
pub fn needs_cluster_dns(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let address = name.parse::<IpAddr>().is_ok();
    !address && (nearness(name) == Nearness::Cluster || !name.contains('.') || name.split('.').nth(2) == Some("svc"))
}

/// A base URL with scheme, host and nothing that must not be there.
///
/// # Errors
/// What is allowed, in words, when it is something else.
pub fn base_url(text: &str) -> Result<(Uri, GatewayUrl), String> {
    const ALLOWED: &str = "http or https, a host, at most a port to 65535 and a path; no user, no query";
    let uri: Uri = text.parse().map_err(|_| ALLOWED.to_owned())?;
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().ok_or(ALLOWED)?;
    if !matches!(scheme, "http" | "https") || authority.as_str().contains('@') || uri.query().is_some() || text.contains('#') {
        return Err(ALLOWED.to_owned());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port_is_one = authority.port().is_none_or(|port| port.as_str().parse::<u16>().is_ok_and(|port| port != 0));
    if host.is_empty() || !port_is_one {
        return Err(ALLOWED.to_owned());
    }
    let base = text.trim_end_matches('/').to_owned();
    Ok((uri, GatewayUrl { base, host }))
}

/// The gateway's base URL: `https`, or `http` where nobody is in between.
///
/// # Errors
/// What is allowed, in words, when it is something else.
pub fn gateway_url(text: &str) -> Result<GatewayUrl, String> {
    let (uri, url) = base_url(text)?;
    if uri.scheme_str() == Some("http") && nearness(&url.host) == Nearness::Far {
        return Err(format!(
            "the token would be sent in the clear to {}: https, or http to a loopback address or a Service written NAME.NAMESPACE.svc",
            url.host
        ));
    }
    Ok(url)
}

/// A listen address: `ADDRESS:PORT`, numbers alone.
///
/// # Errors
/// What is allowed, in words, when it is something else.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port, such as 127.0.0.1:7070 or [::1]:7070".to_owned())
}

/// Whether it is an address block as the API server takes it in a policy: `ADDRESS/BITS`, no bit of the address set behind the
/// block's own, and no IPv4 address written as IPv6.
#[must_use]
pub fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = block(text) else { return false };
    let (bits, most) = match address {
        IpAddr::V4(four) => (u128::from(four.to_bits()) << 96, 32),
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => return false,
        IpAddr::V6(six) => (six.to_bits(), 128),
    };
    length <= most && bits.checked_shl(length).unwrap_or(0) == 0
}

/// Whether a block is all addresses of its kind: nothing is left when it is taken out of them.
#[must_use]
pub fn is_everything(text: &str) -> bool {
    block(text).is_some_and(|(_, length)| length == 0)
}

fn block(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let plain = (1..=3).contains(&bits.len()) && bits.bytes().all(|b| b.is_ascii_digit());
    Some((address.parse().ok()?, bits.parse().ok().filter(|_| plain)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_near_by_its_form_alone() {
        for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1"] {
            assert_eq!(nearness(host), Nearness::Loopback, "{host}");
        }
        for host in ["gateway.prod.svc", "gateway.prod.svc.cluster.local", "a.b.cluster.local"] {
            assert_eq!(nearness(host), Nearness::Cluster, "{host}");
        }
        for host in ["gateway", "gateway.prod", "example.org", "10.0.0.7", "svc", "localhost.example.org", "x.svc", "a.b.svc.example.org"] {
            assert_eq!(nearness(host), Nearness::Far, "{host}");
        }
        for host in ["gateway", "a.b.svc", "a.b.svc.corp", "a.cluster.local"] {
            assert!(needs_cluster_dns(host), "{host}");
        }
        for host in ["10.0.0.7", "::1", "wharf.example.org"] {
            assert!(!needs_cluster_dns(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_never_sent_in_the_clear_to_afar() {
        for url in ["https://gw.example.org", "https://gw.example.org/base/", "http://127.0.0.1:80", "http://[::1]:8080", "http://gw.x.svc"]
        {
            assert!(gateway_url(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "gw.example.org",
            "http://gw.example.org",
            "ftp://gw.example.org",
            "https://",
            "https://user:word@gw.example.org",
            "https://gw.example.org/?x=1",
            "https://gw.example.org/#x",
            "http://127.0.0.1@gw.example.org",
        ] {
            assert!(gateway_url(url).is_err(), "{url}");
        }
        assert_eq!(gateway_url("https://gw.example.org/base/").expect("a URL").base, "https://gw.example.org/base");
    }

    #[test]
    fn address_blocks() {
        for good in ["10.0.0.0/8", "::/0", "64:ff9b::/96", "1.2.3.4/32"] {
            assert!(is_cidr(good), "{good}");
        }
        for evil in
            ["10.0.0.1/8", "fe80::1/10", "::ffff:10.0.0.0/104", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8", "/8", "::/129", "::/"]
        {
            assert!(!is_cidr(evil), "{evil}");
        }
    }
}
