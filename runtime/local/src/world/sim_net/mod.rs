//! A simulated network: hosts whose connections are slow, break, stay half open or lose their way, all drawn from a
//! seed. Code that uses [`Net`] runs on it unchanged, on a runtime with a paused clock.

mod fault;
mod link;
mod network;
mod stream;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep_until;

pub use self::fault::NetFault;
pub use self::link::LinkSettings;
use self::network::Network;
use self::stream::{SharedNetwork, SimAcceptor};
use super::net::{Acceptor, Net, NetFuture, Route, Stream};
use crate::clock::now;

/// A network of simulated hosts.
#[derive(Debug)]
pub struct SimNet {
    network: SharedNetwork,
    /// The task that delivers packets.
    delivery: AbortHandle,
}

impl SimNet {
    /// Creates a network without hosts, whose links all have the same properties. Packets are delivered by a task of
    /// the current runtime until this is dropped.
    pub fn new(seed: u64, links: LinkSettings) -> SimNet {
        let changed = Arc::new(Notify::new());
        let network = SharedNetwork::new(Network::new(seed, links, Arc::clone(&changed)));
        let delivery = tokio::spawn(deliver(network.clone(), changed));
        SimNet {
            network,
            delivery: delivery.abort_handle(),
        }
    }

    /// Adds a host; returns the network as it sees it.
    pub fn host(&self, host: IpAddr) -> Arc<dyn Net> {
        self.network.lock().add_host(host);
        Arc::new(HostNet {
            host,
            network: self.network.clone(),
        })
    }

    /// Sets a function that receives a line for each change: connections that are opened, accepted and refused, and
    /// faults. It must not use this network.
    pub fn observe(&self, observer: impl FnMut(&str) + Send + 'static) {
        self.network.lock().observe(Box::new(observer));
    }

    /// Returns the number of connections that some process holds open.
    pub fn connections(&self) -> usize {
        self.network.lock().connections()
    }

    /// Ends all connections and listening sockets of a host without a word to its peers, as a power failure does. A
    /// host whose process just ends needs no call: the connections close when they are dropped.
    pub fn cut_power(&self, host: IpAddr) {
        self.network.lock().cut_power(host);
    }

    /// Starts a host again after [`SimNet::cut_power`].
    pub fn restore_power(&self, host: IpAddr) {
        self.network.lock().restore_power(host, now());
    }

    /// Lets packets pass in one direction no more, until [`SimNet::unblock`] was called as often.
    pub fn block(&self, from: IpAddr, to: IpAddr) {
        self.network.lock().block(from, to, now());
    }

    /// Takes back a [`SimNet::block`].
    pub fn unblock(&self, from: IpAddr, to: IpAddr) {
        self.network.lock().unblock(from, to, now());
    }

    /// Changes the properties of a link in one direction. The window is that of connections opened later.
    pub fn set_link(&self, from: IpAddr, to: IpAddr, settings: LinkSettings) {
        self.network.lock().set_link(from, to, settings, now());
    }

    /// Ends all blocks and changes of links. Broken and severed connections stay so.
    pub fn heal(&self) {
        self.network.lock().heal(now());
    }

    /// Causes a fault; it ends by itself if it has a duration.
    pub fn inject(&self, fault: &NetFault) {
        let mut network = self.network.lock();
        let now = now();
        match fault {
            NetFault::BlockOneWay { from, to, lasting } => {
                network.block(*from, *to, now);
                network.unblock_at(now + *lasting, *from, *to);
            }
            NetFault::Partition {
                one,
                other,
                lasting,
            } => {
                for (from, to) in [(*one, *other), (*other, *one)] {
                    network.block(from, to, now);
                    network.unblock_at(now + *lasting, from, to);
                }
            }
            NetFault::ResetEnds { host, peer } => network.reset_ends(*host, *peer),
            NetFault::Reset { one, other } => {
                network.reset_ends(*one, *other);
                network.reset_ends(*other, *one);
            }
            NetFault::Sever { one, other } => network.sever(*one, *other),
            NetFault::Change {
                from,
                to,
                settings,
                lasting,
            } => {
                network.set_link(*from, *to, settings.clone(), now);
                network.reset_link_at(now + *lasting, *from, *to);
            }
        }
    }
}

impl Drop for SimNet {
    fn drop(&mut self) {
        self.delivery.abort();
    }
}

/// Delivers packets when they are due.
async fn deliver(network: SharedNetwork, changed: Arc<Notify>) {
    loop {
        let next = network.lock().advance(now());
        match next {
            None => changed.notified().await,
            Some(at) => {
                tokio::select! {
                    biased;
                    () = changed.notified() => {}
                    () = sleep_until(at) => {}
                }
            }
        }
    }
}

/// The network as a simulated host sees it.
#[derive(Debug)]
struct HostNet {
    host: IpAddr,
    network: SharedNetwork,
}

impl HostNet {
    /// Returns this host's address as its peer at `address` sees it.
    fn own_address(&self, address: SocketAddr) -> IpAddr {
        if address.ip().is_loopback() {
            address.ip()
        } else {
            self.host
        }
    }
}

impl Net for HostNet {
    fn connect<'a>(&'a self, address: &'a str) -> NetFuture<'a, Stream> {
        Box::pin(async move {
            let mut server = resolve(address)?;
            let own = self.own_address(server);
            if server.ip().is_loopback() {
                server.set_ip(self.host);
            }
            stream::connect(self.network.clone(), self.host, own, server).await
        })
    }

    fn listen<'a>(&'a self, address: &'a str) -> NetFuture<'a, Box<dyn Acceptor>> {
        Box::pin(async move {
            let address = resolve(address)?;
            let is_own = address.ip() == self.host
                || address.ip().is_loopback()
                || address.ip().is_unspecified();
            if !is_own {
                return Err(ErrorKind::AddrNotAvailable.into());
            }
            let acceptor: Box<dyn Acceptor> = Box::new(SimAcceptor::listen(
                self.network.clone(),
                self.host,
                address,
            )?);
            Ok(acceptor)
        })
    }

    fn route_to(&self, address: &str) -> io::Result<Route> {
        let peer = resolve(address)?;
        Ok(Route {
            own: self.own_address(peer),
            peer: peer.ip(),
        })
    }
}

/// The network of a host that is on none.
#[derive(Debug)]
pub(super) struct Unconnected;

impl Net for Unconnected {
    fn connect<'a>(&'a self, _address: &'a str) -> NetFuture<'a, Stream> {
        Box::pin(async { Err(ErrorKind::NetworkUnreachable.into()) })
    }

    fn listen<'a>(&'a self, _address: &'a str) -> NetFuture<'a, Box<dyn Acceptor>> {
        Box::pin(async { Err(ErrorKind::AddrNotAvailable.into()) })
    }

    fn route_to(&self, _address: &str) -> io::Result<Route> {
        Err(ErrorKind::NetworkUnreachable.into())
    }
}

/// Parses `IP:PORT` or `localhost:PORT`; there are no other names.
fn resolve(address: &str) -> io::Result<SocketAddr> {
    let invalid = || io::Error::new(ErrorKind::InvalidInput, "not an IP address and a port");
    if let Some(port) = address.strip_prefix("localhost:") {
        let port = port.parse().map_err(|_| invalid())?;
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    address.parse().map_err(|_| invalid())
}
