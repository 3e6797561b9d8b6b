//! The form of a task's address. Whether a task listens there is not checked.

use std::net::Ipv6Addr;

/// Splits `host:port`. The host is a name, an IPv4 address, or an IPv6 address in brackets, as in `[::1]:2222`.
pub fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit()); // `parse` alone would accept `+1`
    if !is_number || !is_host(host) {
        return None;
    }
    Some((host, port.parse().ok()?))
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    }
}
