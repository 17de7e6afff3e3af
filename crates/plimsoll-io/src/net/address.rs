//! Addresses as people write them: `host:port`, an IPv6 address in brackets.

use std::net::IpAddr;

use super::StreamError;

/// Host and port of an address.
pub(super) fn parse(address: &str) -> Result<(&str, u16), StreamError> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| {
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        // A sign would be taken for part of the number.
        let port = port.bytes().all(|byte| byte.is_ascii_digit()).then_some(port)?;
        (!host.is_empty()).then_some((host, port.parse().ok()?))
    });
    parts.ok_or_else(|| StreamError::BadAddress(address.to_owned()))
}

/// Whether an address can only be reached from this machine. A name is no proof, except
/// `localhost`.
pub fn is_loopback(address: &str) -> bool {
    parse(address).is_ok_and(|(host, _)| {
        host.parse::<IpAddr>().map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::{is_loopback, parse};

    /// An address means one thing or nothing.
    #[test]
    fn an_address_has_a_host_and_a_port() {
        let check = |text, expected| assert_eq!(parse(text).ok(), expected, "{text}");
        check("host:1", Some(("host", 1)));
        check("10.0.0.1:65535", Some(("10.0.0.1", 65535)));
        check("[::1]:80", Some(("::1", 80)));
        for wrong in [
            "",
            "host",
            "host:",
            ":80",
            "::1:80",
            "[::1:80",
            "host:65536",
            "host:+1",
            "host:-1",
            "host: 1",
        ] {
            check(wrong, None);
        }
        let loopback = ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"];
        assert!(loopback.iter().all(|address| is_loopback(address)));
        assert!(
            !["0.0.0.0:1", "[::]:1", "here:1", "127.0.0.1"]
                .iter()
                .any(|address| is_loopback(address))
        );
    }
}
