//! The links between simulated hosts: delay, throughput and whether they work. The directions are independent.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;

use super::super::SplitMix;

/// Time until TCP repeats a lost packet. It doubles with each repetition.
const RETRANSMISSION: Duration = Duration::from_millis(200);
/// Maximum number of repetitions that are drawn for one packet.
const LOSSES_MAX: u32 = 6;

/// The properties of a link in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    /// Bounds of the time that a packet takes.
    pub latency: RangeInclusive<Duration>,
    /// How many of 1000 packets are lost, which delays them until they are repeated.
    pub losses_per_thousand: u64,
    /// Throughput.
    pub bytes_per_second: u64,
    /// Bytes that can be on their way or unread on one connection. A writer waits while there are more.
    pub window_bytes: usize,
    /// Maximum number of bytes that one read or write transfers; the number is drawn from 1.
    pub piece_bytes_max: usize,
}

impl Default for LinkSettings {
    /// A local network whose reads and writes are often short.
    fn default() -> LinkSettings {
        LinkSettings {
            latency: Duration::from_micros(100)..=Duration::from_millis(3),
            losses_per_thousand: 0,
            bytes_per_second: 100 << 20,
            window_bytes: 256 << 10,
            piece_bytes_max: 64 << 10,
        }
    }
}

impl LinkSettings {
    /// Draws a link: from a fast one to one that a slow reader throttles.
    pub fn draw(numbers: &mut SplitMix) -> LinkSettings {
        let latency = [1, 5, 50, 400][numbers.choice(4)];
        let throughput = [2 << 10, 64 << 10, 1 << 20, 100 << 20][numbers.choice(4)];
        LinkSettings {
            latency: Duration::from_micros(100)..=Duration::from_millis(latency),
            losses_per_thousand: [0, 0, 10, 100][numbers.choice(4)],
            bytes_per_second: throughput,
            window_bytes: [4 << 10, 64 << 10, 1 << 20][numbers.choice(3)],
            piece_bytes_max: [7, 1 << 10, 64 << 10][numbers.choice(3)],
        }
    }
}

/// The links between all hosts.
#[derive(Debug, Default)]
pub(super) struct Links {
    usual: LinkSettings,
    links: BTreeMap<(IpAddr, IpAddr), Link>,
}

#[derive(Debug)]
struct Link {
    settings: LinkSettings,
    /// Number of faults that block it.
    blocks: u32,
    /// When all bytes that were sent so far have left.
    free: Instant,
}

impl Links {
    pub(super) fn new(usual: LinkSettings) -> Links {
        Links {
            usual,
            links: BTreeMap::new(),
        }
    }

    pub(super) fn settings(&self, from: IpAddr, to: IpAddr) -> &LinkSettings {
        match self.links.get(&(from, to)) {
            Some(link) => &link.settings,
            None => &self.usual,
        }
    }

    pub(super) fn set(&mut self, from: IpAddr, to: IpAddr, settings: LinkSettings, now: Instant) {
        self.link(from, to, now).settings = settings;
    }

    /// Gives the link its usual properties again.
    pub(super) fn reset(&mut self, from: IpAddr, to: IpAddr, now: Instant) {
        let usual = self.usual.clone();
        self.set(from, to, usual, now);
    }

    pub(super) fn block(&mut self, from: IpAddr, to: IpAddr, now: Instant) {
        self.link(from, to, now).blocks += 1;
    }

    pub(super) fn unblock(&mut self, from: IpAddr, to: IpAddr, now: Instant) {
        let link = self.link(from, to, now);
        link.blocks = link.blocks.saturating_sub(1);
    }

    /// Removes all blocks, and gives all links their usual properties.
    pub(super) fn heal(&mut self) {
        self.links.clear();
    }

    pub(super) fn is_blocked(&self, from: IpAddr, to: IpAddr) -> bool {
        match self.links.get(&(from, to)) {
            Some(link) => link.blocks > 0,
            None => false,
        }
    }

    /// Returns when a packet arrives that is sent now.
    pub(super) fn arrival(
        &mut self,
        from: IpAddr,
        to: IpAddr,
        bytes: usize,
        numbers: &mut SplitMix,
        now: Instant,
    ) -> Instant {
        let link = self.link(from, to, now);
        let settings = &link.settings;
        let transfer = Duration::from_secs(bytes as u64) / clamped(settings.bytes_per_second);
        link.free = link.free.max(now) + transfer;
        let mut arrival = link.free + numbers.duration(&settings.latency);
        let mut pause = RETRANSMISSION;
        for _ in 0..LOSSES_MAX {
            if numbers.below(1000) >= settings.losses_per_thousand {
                break;
            }
            arrival += pause;
            pause *= 2;
        }
        arrival
    }

    fn link(&mut self, from: IpAddr, to: IpAddr, now: Instant) -> &mut Link {
        let usual = &self.usual;
        self.links.entry((from, to)).or_insert_with(|| Link {
            settings: usual.clone(),
            blocks: 0,
            free: now,
        })
    }
}

fn clamped(bytes_per_second: u64) -> u32 {
    u32::try_from(bytes_per_second).unwrap_or(u32::MAX).max(1)
}
