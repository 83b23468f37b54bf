//! Faults of a simulated network.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::SplitMix;
use super::link::LinkSettings;

/// Bounds of how long a drawn fault lasts: from a hiccup to longer than every deadline of a cluster.
const LASTING: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(90);

/// A fault of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetFault {
    /// No packet passes in one direction. Connections continue afterwards.
    BlockOneWay {
        /// The sender.
        from: IpAddr,
        /// The receiver.
        to: IpAddr,
        /// How long it lasts.
        lasting: Duration,
    },
    /// No packet passes in either direction. Connections continue afterwards.
    Partition {
        /// A host.
        one: IpAddr,
        /// The other host.
        other: IpAddr,
        /// How long it lasts.
        lasting: Duration,
    },
    /// A host ends its connections with another, which learns of it only when it sends something.
    ResetEnds {
        /// The host whose connections break.
        host: IpAddr,
        /// The host whose connections stay half open.
        peer: IpAddr,
    },
    /// All connections between two hosts break at both ends.
    Reset {
        /// A host.
        one: IpAddr,
        /// The other host.
        other: IpAddr,
    },
    /// A router forgets the connections between two hosts, so that both ends stay open and nothing arrives.
    Sever {
        /// A host.
        one: IpAddr,
        /// The other host.
        other: IpAddr,
    },
    /// A link changes its properties for some time.
    Change {
        /// The sender.
        from: IpAddr,
        /// The receiver.
        to: IpAddr,
        /// The properties.
        settings: LinkSettings,
        /// How long it lasts.
        lasting: Duration,
    },
}

impl NetFault {
    /// Draws a fault between two of these hosts, of which there are at least two.
    pub fn draw(numbers: &mut SplitMix, hosts: &[IpAddr]) -> NetFault {
        let first = numbers.choice(hosts.len());
        let distance = 1 + numbers.choice(hosts.len() - 1);
        let one = hosts[first];
        let other = hosts[(first + distance) % hosts.len()];
        // Short faults are as likely as long ones.
        let longest = *LASTING.end() / [1, 10, 100][numbers.choice(3)];
        let lasting = numbers.duration(&(*LASTING.start()..=longest));
        match numbers.below(6) {
            0 => NetFault::BlockOneWay {
                from: one,
                to: other,
                lasting,
            },
            1 => NetFault::Partition {
                one,
                other,
                lasting,
            },
            2 => NetFault::ResetEnds {
                host: one,
                peer: other,
            },
            3 => NetFault::Reset { one, other },
            4 => NetFault::Sever { one, other },
            _ => NetFault::Change {
                from: one,
                to: other,
                settings: LinkSettings::draw(numbers),
                lasting,
            },
        }
    }
}

impl Display for NetFault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            NetFault::BlockOneWay { from, to, lasting } => {
                write!(formatter, "block {from} -> {to} for {lasting:?}")
            }
            NetFault::Partition {
                one,
                other,
                lasting,
            } => write!(formatter, "partition {one} and {other} for {lasting:?}"),
            NetFault::ResetEnds { host, peer } => {
                write!(formatter, "reset {host}'s ends of connections with {peer}")
            }
            NetFault::Reset { one, other } => {
                write!(formatter, "reset connections of {one} and {other}")
            }
            NetFault::Sever { one, other } => {
                write!(formatter, "forget connections of {one} and {other}")
            }
            NetFault::Change {
                from, to, lasting, ..
            } => write!(formatter, "change {from} -> {to} for {lasting:?}"),
        }
    }
}
