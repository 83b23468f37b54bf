//! Addresses for daemons that keep theirs over restarts.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU16, Ordering};

/// Above the ports that need root and those of well-known services.
const FIRST: u16 = 10_000;

/// Returns a free address of this machine for a daemon that keeps it over restarts.
///
/// Its port is none of those that the kernel chooses for connections and for listeners on port 0: one of these would be
/// taken by somebody else while the daemon is down.
///
/// # Panics
/// Panics if no port is free.
pub fn free_address() -> SocketAddr {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let chosen_by_kernel = chosen_by_kernel();
    let ports: Vec<u16> = (FIRST..=u16::MAX)
        .filter(|port| !chosen_by_kernel.contains(port))
        .collect();
    assert!(
        !ports.is_empty(),
        "the kernel chooses among all ports: {chosen_by_kernel:?}"
    );
    // Tests of other processes begin elsewhere.
    let begin = std::process::id() as usize * 61;
    for _ in 0..ports.len() {
        let next = usize::from(ASKED.fetch_add(1, Ordering::Relaxed));
        let port = ports[(begin + next) % ports.len()];
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port is free");
}

/// Returns the range from which the kernel takes ports.
fn chosen_by_kernel() -> RangeInclusive<u16> {
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    let text = fs::read_to_string(path).expect("the range of ports");
    let mut limits = text
        .split_whitespace()
        .map(|limit| limit.parse().expect("a port"));
    let first = limits.next().expect("the first port");
    let last = limits.next().expect("the last port");
    first..=last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_are_not_chosen_by_the_kernel() {
        let one = free_address();
        let other = free_address();
        assert_ne!(one, other);
        for address in [one, other] {
            assert!(!chosen_by_kernel().contains(&address.port()), "{address}");
        }
    }
}
