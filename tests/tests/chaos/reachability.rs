//! Hosts that cannot reach each other in one direction: the proxies of data servers refuse some workers,
//! identified by the process at the other end of a connection.

use std::fs;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::Rng;
use rand_pcg::Pcg64;

use crate::daemons::Daemons;
use crate::faults::Injected;
use crate::processes::Process;

/// Longest time to wait for a connection to an unreachable host.
const PATIENCE: Duration = Duration::from_secs(4);

/// Refuses all connections to the victim.
pub fn cannot_be_reached(random: &mut Pcg64, daemons: &Daemons, victim: usize) -> Injected {
    let server = &daemons.workers[victim].data;
    server.refuse(Some(Box::new(|_| true)));
    server.cut();
    let seen = wait_for_refusals(random, || server.refused());
    server.refuse(None);
    seen
}

/// Refuses all connections of the victim.
pub fn cannot_reach(random: &mut Pcg64, daemons: &Daemons, victim: usize) -> Injected {
    let worker = daemons.workers[victim].process.id();
    let others: Vec<_> = (0..daemons.workers.len())
        .filter(|index| *index != victim)
        .collect();
    let servers = || others.iter().map(|index| &daemons.workers[*index].data);
    for server in servers() {
        server.refuse(Some(Box::new(move |client| is_of_worker(worker, client))));
        server.cut();
    }
    let seen = wait_for_refusals(random, || servers().map(|server| server.refused()).sum());
    servers().for_each(|server| server.refuse(None));
    seen
}

/// Waits for a refused connection, and then for a random time.
fn wait_for_refusals(random: &mut Pcg64, refused: impl Fn() -> u64) -> Injected {
    let before = refused();
    let began = Instant::now();
    while refused() == before && began.elapsed() < PATIENCE {
        sleep(Duration::from_millis(5));
    }
    if refused() == before {
        return Injected::NothingToHit;
    }
    sleep(Duration::from_millis(random.random_range(0..2_500)));
    Injected::Fired
}

/// Returns whether a connection comes from a worker's daemon or one of its tasks.
fn is_of_worker(worker: u32, client: SocketAddr) -> bool {
    let Some(socket) = socket_of(client) else {
        return false;
    };
    let tasks = Process::tasks_of(worker);
    let own = Process::of(worker);
    tasks
        .iter()
        .chain(&own)
        .any(|process| has_open(process, &socket))
}

/// Returns the link target of the descriptor whose connection has this local address.
fn socket_of(local: SocketAddr) -> Option<String> {
    let SocketAddr::V4(local) = local else {
        return None;
    };
    let wanted = format!(
        "{:08X}:{:04X}",
        u32::from_le_bytes(local.ip().octets()),
        local.port()
    );
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let fields = table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let mut own = fields.filter(|fields| fields.get(1) == Some(&wanted.as_str()));
    own.find_map(|fields| Some(format!("socket:[{}]", fields.get(9)?)))
}

fn has_open(process: &Process, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", process.number)) else {
        return false;
    };
    descriptors
        .flatten()
        .any(|one| fs::read_link(one.path()).is_ok_and(|to| to.as_os_str() == socket))
}
