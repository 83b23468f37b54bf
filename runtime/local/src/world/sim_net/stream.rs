//! Halves of simulated connections, and listening sockets.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use napreduce_protocol::lock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::net::{Acceptor, Receiving, Sending, Stream};
use super::network::{ConnectionId, ListenerId, Network, Side};
use crate::clock::now;

/// A network that hosts share.
#[derive(Clone)]
pub(super) struct SharedNetwork(Arc<Mutex<Network>>);

impl SharedNetwork {
    pub(super) fn new(network: Network) -> SharedNetwork {
        SharedNetwork(Arc::new(Mutex::new(network)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Network> {
        lock(&self.0)
    }
}

impl Debug for SharedNetwork {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedNetwork")
    }
}

/// One of two handles that hold an end of a connection open.
#[derive(Debug)]
pub(super) struct Half {
    network: SharedNetwork,
    id: ConnectionId,
    side: Side,
}

impl Drop for Half {
    fn drop(&mut self) {
        self.network.lock().drop_half(self.id, self.side, now());
    }
}

/// Connects; dropping the future gives up.
pub(super) async fn connect(
    network: SharedNetwork,
    host: IpAddr,
    client: IpAddr,
    server: SocketAddr,
) -> io::Result<Stream> {
    let id = network.lock().connect(host, client, server, now())?;
    let half = Half {
        network: network.clone(),
        id,
        side: Side::Client,
    };
    std::future::poll_fn(|context| network.lock().poll_connected(id, context)).await?;
    Ok(stream(half))
}

/// Creates both halves; one of them is given.
fn stream(half: Half) -> Stream {
    let other = Half {
        network: half.network.clone(),
        ..half
    };
    Stream {
        receiving: Box::new(SimReceiving(half)),
        sending: Box::new(SimSending(other)),
    }
}

#[derive(Debug)]
struct SimReceiving(Half);

#[derive(Debug)]
struct SimSending(Half);

impl Receiving for SimReceiving {}

impl AsyncRead for SimReceiving {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Half { network, id, side } = &self.0;
        network.lock().poll_read(*id, *side, context, buffer, now())
    }
}

impl Sending for SimSending {
    fn limit_buffer(&self, bytes: usize) -> io::Result<()> {
        let Half { network, id, side } = &self.0;
        network.lock().limit_window(*id, *side, bytes);
        Ok(())
    }
}

impl AsyncWrite for SimSending {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Half { network, id, side } = &self.0;
        network.lock().poll_write(*id, *side, context, bytes, now())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Half { network, id, side } = &self.0;
        network.lock().shut_down(*id, *side, now());
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimSending {
    fn drop(&mut self) {
        let Half { network, id, side } = &self.0;
        network.lock().shut_down(*id, *side, now());
    }
}

/// A listening socket of a simulated host.
#[derive(Debug)]
pub(super) struct SimAcceptor {
    network: SharedNetwork,
    id: ListenerId,
    address: SocketAddr,
}

impl SimAcceptor {
    pub(super) fn listen(
        network: SharedNetwork,
        host: IpAddr,
        mut address: SocketAddr,
    ) -> io::Result<SimAcceptor> {
        let loopback_only = address.ip().is_loopback();
        let id = network.lock().listen(host, address.port(), loopback_only)?;
        address.set_port(id.port);
        Ok(SimAcceptor {
            network,
            id,
            address,
        })
    }
}

impl Acceptor for SimAcceptor {
    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Stream, SocketAddr)>> {
        let (id, peer) = ready!(self.network.lock().poll_accept(self.id, context));
        let half = Half {
            network: self.network.clone(),
            id,
            side: Side::Server,
        };
        Poll::Ready(Ok((stream(half), peer)))
    }
}

impl Drop for SimAcceptor {
    fn drop(&mut self) {
        self.network.lock().close_listener(self.id, now());
    }
}
