//! The network, as a coordinator, worker or client uses it.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A host that does not answer this many probes, the first after this idle time, is dead.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// The result of a call that waits for the network.
pub type NetFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The network of one host.
pub trait Net: Debug + Send + Sync {
    /// Connects to `HOST:PORT`.
    fn connect<'a>(&'a self, address: &'a str) -> NetFuture<'a, Stream>;

    /// Listens on `HOST:PORT`; port 0 means any.
    fn listen<'a>(&'a self, address: &'a str) -> NetFuture<'a, Box<dyn Acceptor>>;

    /// Returns the addresses at both ends of the route to `HOST:PORT`, and sends nothing.
    fn route_to(&self, address: &str) -> io::Result<Route>;
}

/// A listening socket.
pub trait Acceptor: Debug + Send {
    /// Returns the address that it listens on.
    fn address(&self) -> io::Result<SocketAddr>;

    /// Returns the next connection, with the address of its peer.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Stream, SocketAddr)>>;
}

/// The addresses at both ends of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// This host's address.
    pub own: IpAddr,
    /// The other host's address.
    pub peer: IpAddr,
}

/// A connection: a stream of bytes in each direction.
#[derive(Debug)]
pub struct Stream {
    /// The half that receives.
    pub receiving: Box<dyn Receiving>,
    /// The half that sends.
    pub sending: Box<dyn Sending>,
}

/// The receiving half of a connection.
pub trait Receiving: AsyncRead + Any + Debug + Send + Sync + Unpin {}

/// The sending half of a connection. Dropping it ends the stream to the peer.
pub trait Sending: AsyncWrite + Any + Debug + Send + Sync + Unpin {
    /// Limits the bytes that the system accepts before the peer has received them.
    fn limit_buffer(&self, bytes: usize) -> io::Result<()>;
}

impl Stream {
    /// Joins the halves into a socket for a blocking thread.
    ///
    /// # Errors
    /// Fails if the connection is not TCP.
    pub fn into_blocking(self) -> io::Result<std::net::TcpStream> {
        let receiving: Box<dyn Any> = self.receiving;
        let sending: Box<dyn Any> = self.sending;
        let (Ok(receiving), Ok(sending)) = (
            receiving.downcast::<OwnedReadHalf>(),
            sending.downcast::<OwnedWriteHalf>(),
        ) else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a TCP connection",
            ));
        };
        let joined = receiving.reunite(*sending).map_err(io::Error::other)?;
        let socket = joined.into_std()?;
        socket.set_nonblocking(false)?;
        Ok(socket)
    }
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Stream {
        let (receiving, sending) = socket.into_split();
        Stream {
            receiving: Box::new(receiving),
            sending: Box::new(sending),
        }
    }
}

impl Receiving for OwnedReadHalf {}

impl Sending for OwnedWriteHalf {
    fn limit_buffer(&self, bytes: usize) -> io::Result<()> {
        let socket: &TcpStream = self.as_ref();
        Ok(sockopt::set_socket_send_buffer_size(socket, bytes)?)
    }
}

/// TCP over the network of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Tcp;

impl Net for Tcp {
    fn connect<'a>(&'a self, address: &'a str) -> NetFuture<'a, Stream> {
        Box::pin(async move {
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            Ok(Stream::from(socket))
        })
    }

    fn listen<'a>(&'a self, address: &'a str) -> NetFuture<'a, Box<dyn Acceptor>> {
        Box::pin(async move {
            let socket = TcpListener::bind(address).await?;
            let acceptor: Box<dyn Acceptor> = Box::new(socket);
            Ok(acceptor)
        })
    }

    /// Connects a datagram socket, which sends nothing.
    fn route_to(&self, address: &str) -> io::Result<Route> {
        let any = if address.starts_with('[') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        Ok(Route {
            own: socket.local_addr()?.ip(),
            peer: socket.peer_addr()?.ip(),
        })
    }
}

impl Acceptor for TcpListener {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Stream, SocketAddr)>> {
        let (socket, peer) = ready!(TcpListener::poll_accept(self, context))?;
        enable_keepalive(&socket);
        socket.set_nodelay(true)?;
        Poll::Ready(Ok((Stream::from(socket), peer)))
    }
}

/// Lets the kernel detect a dead host on idle connections. If that fails, the next write detects it.
fn enable_keepalive(socket: &TcpStream) {
    let _ = sockopt::set_socket_keepalive(socket, true)
        .and_then(|()| sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE))
        .and_then(|()| sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL))
        .and_then(|()| sockopt::set_tcp_keepcnt(socket, KEEPALIVE_TRIES));
}
