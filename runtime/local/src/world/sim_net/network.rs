//! The state of a simulated network: hosts, connections and the packets on their way. It models TCP as processes see it.
//!
//! Packets of a stream are numbered, so that they are delivered in order. A packet that meets a blocked link or a host
//! without power is held and sent again later, as TCP repeats it. Resets are not repeated: a peer that misses one keeps a
//! half-open connection until it sends something or probes the connection.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::SplitMix;
use super::link::{LinkSettings, Links};

/// Connections that a listening socket keeps before the process accepts them.
const BACKLOG_MAX: usize = 1024;
/// Pause before a connection request is repeated that met a full backlog.
const BACKLOG_PAUSE: Duration = Duration::from_secs(1);
/// The time until an unanswered connection request fails; Linux repeats it six times.
const CONNECT_MAX: Duration = Duration::from_secs(127);
/// Interval at which an end checks whether its peer can be reached.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// An accepted connection without unread data ends if its peer is unreachable for so long: 30 s idle and three probes.
const KEEPALIVE_MAX: Duration = Duration::from_secs(60);
/// A connection with unread data ends if its peer is unreachable for so long: Linux's 15 repetitions.
const UNANSWERED_MAX: Duration = Duration::from_secs(924);
/// Maximum pause between two repetitions of a packet.
const REPETITION_MAX: Duration = Duration::from_secs(60);
const FIRST_PORT: u16 = 32_768;

pub(super) type ConnectionId = u64;

/// Receives a line for each change.
pub(super) type Observer = Box<dyn FnMut(&str) + Send>;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A listening socket, as a process names it. The number tells it from a later one with its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenerId {
    pub(super) host: IpAddr,
    pub(super) port: u16,
    number: u64,
}

pub(super) struct Network {
    numbers: SplitMix,
    links: Links,
    hosts: BTreeMap<IpAddr, Host>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Number of connections and listening sockets so far.
    opened: u64,
    /// Pending events, by time and then by number.
    events: BTreeMap<(Instant, u64), Event>,
    scheduled: u64,
    /// Packets that could not be delivered, in order, with the time of their last try.
    held: Vec<(Instant, Packet)>,
    /// Notified when the next event changes.
    changed: Arc<Notify>,
    observer: Option<Observer>,
}

#[derive(Debug)]
struct Host {
    has_power: bool,
    next_port: u16,
    listeners: BTreeMap<u16, Listening>,
}

#[derive(Debug)]
struct Listening {
    number: u64,
    loopback_only: bool,
    backlog: VecDeque<ConnectionId>,
    accepting: Option<Waker>,
}

#[derive(Debug)]
struct Connection {
    client: End,
    server: End,
    /// Whether a router between the hosts has forgotten it and drops its packets.
    is_severed: bool,
    numbers: SplitMix,
}

#[derive(Debug)]
struct End {
    host: IpAddr,
    /// The address that the peer sees.
    address: SocketAddr,
    holder: Holder,
    is_established: bool,
    /// Bytes that have arrived and were not read.
    inbox: VecDeque<u8>,
    /// Whether the peer has ended its stream.
    has_ended: bool,
    /// Whether this end has ended its stream.
    has_shut_down: bool,
    /// The error of all later calls.
    broken: Option<ErrorKind>,
    next_sent: u64,
    next_delivered: u64,
    /// Packets that arrived before earlier ones.
    early: BTreeMap<u64, Piece>,
    /// Bytes that were sent and, as far as this end knows, not read.
    outstanding: usize,
    window: usize,
    reading: Option<Waker>,
    writing: Option<Waker>,
    /// When the peer was last reachable.
    heard: Instant,
}

/// The owner of an end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// The system, until the process accepts it.
    System,
    /// The process, by so many halves.
    Process(u8),
    Nobody,
}

#[derive(Debug)]
enum Event {
    Arrive(Packet),
    FailToConnect(ConnectionId),
    Check(ConnectionId, Side),
    Unblock { from: IpAddr, to: IpAddr },
    ResetLink { from: IpAddr, to: IpAddr },
}

#[derive(Debug)]
struct Packet {
    connection: ConnectionId,
    to: Side,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Asks for a connection.
    Open,
    /// Accepts it.
    Opened,
    /// No process listens at this address.
    Refused,
    /// A part of the stream.
    Numbered(u64, Piece),
    /// The process has read so many bytes.
    Read(usize),
    /// There is no such connection any more.
    Reset,
}

#[derive(Debug)]
enum Piece {
    /// Confirms the connection.
    Begin,
    Bytes(Vec<u8>),
    End,
}

impl End {
    fn new(host: IpAddr, address: SocketAddr, holder: Holder, window: usize, now: Instant) -> End {
        End {
            host,
            address,
            holder,
            is_established: false,
            inbox: VecDeque::new(),
            has_ended: false,
            has_shut_down: false,
            broken: None,
            next_sent: 0,
            next_delivered: 0,
            early: BTreeMap::new(),
            outstanding: 0,
            window,
            reading: None,
            writing: None,
            heard: now,
        }
    }

    fn is_open(&self) -> bool {
        self.holder != Holder::Nobody && self.broken.is_none()
    }

    fn fail(&mut self, kind: ErrorKind) {
        if self.broken.is_none() {
            self.broken = Some(kind);
        }
        self.wake();
    }

    fn wake(&mut self) {
        for waker in [self.reading.take(), self.writing.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }
}

impl Connection {
    fn end(&self, side: Side) -> &End {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn is_held(&self) -> bool {
        self.client.holder != Holder::Nobody || self.server.holder != Holder::Nobody
    }

    fn joins(&self, one: IpAddr, other: IpAddr) -> bool {
        let hosts = (self.client.host, self.server.host);
        hosts == (one, other) || hosts == (other, one)
    }
}

/// The life of hosts and links.
impl Network {
    pub(super) fn new(seed: u64, usual: LinkSettings, changed: Arc<Notify>) -> Network {
        Network {
            numbers: SplitMix::new(seed),
            links: Links::new(usual),
            hosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            opened: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            held: Vec::new(),
            changed,
            observer: None,
        }
    }

    pub(super) fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(observer) = &mut self.observer {
            observer(&line());
        }
    }

    pub(super) fn add_host(&mut self, host: IpAddr) {
        self.hosts.entry(host).or_insert(Host {
            has_power: true,
            next_port: FIRST_PORT,
            listeners: BTreeMap::new(),
        });
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn cut_power(&mut self, host: IpAddr) {
        self.note(|| format!("{host} has lost power"));
        if let Some(host) = self.hosts.get_mut(&host) {
            host.has_power = false;
            host.listeners.clear();
        }
        for connection in self.connections.values_mut() {
            for side in [Side::Client, Side::Server] {
                let end = connection.end_mut(side);
                if end.host == host {
                    end.holder = Holder::Nobody;
                }
            }
        }
        let connections = &self.connections;
        self.held.retain(|(_, packet)| {
            let Some(connection) = connections.get(&packet.connection) else {
                return false;
            };
            connection.end(packet.to.other()).host != host
        });
        self.connections
            .retain(|_, connection| connection.is_held());
    }

    pub(super) fn restore_power(&mut self, host: IpAddr, now: Instant) {
        self.note(|| format!("{host} has power"));
        if let Some(host) = self.hosts.get_mut(&host) {
            host.has_power = true;
        }
        self.repeat_held(now);
    }

    pub(super) fn block(&mut self, from: IpAddr, to: IpAddr, now: Instant) {
        self.note(|| format!("blocked {from} -> {to}"));
        self.links.block(from, to, now);
    }

    pub(super) fn unblock(&mut self, from: IpAddr, to: IpAddr, now: Instant) {
        self.note(|| format!("unblocked {from} -> {to}"));
        self.links.unblock(from, to, now);
        self.repeat_held(now);
    }

    pub(super) fn set_link(
        &mut self,
        from: IpAddr,
        to: IpAddr,
        settings: LinkSettings,
        now: Instant,
    ) {
        self.note(|| {
            let LinkSettings {
                latency,
                losses_per_thousand,
                bytes_per_second,
                ..
            } = &settings;
            format!(
                "{from} -> {to} takes {:?} to {:?}, loses {losses_per_thousand} of 1000 packets, \
                 passes {bytes_per_second} bytes/s",
                latency.start(),
                latency.end()
            )
        });
        self.links.set(from, to, settings, now);
    }

    /// Removes all blocks, and gives all links their usual properties.
    pub(super) fn heal(&mut self, now: Instant) {
        self.note(|| String::from("all links work"));
        self.links.heal();
        self.events
            .retain(|_, event| !matches!(event, Event::Unblock { .. } | Event::ResetLink { .. }));
        self.repeat_held(now);
    }

    pub(super) fn unblock_at(&mut self, at: Instant, from: IpAddr, to: IpAddr) {
        self.schedule(at, Event::Unblock { from, to });
    }

    pub(super) fn reset_link_at(&mut self, at: Instant, from: IpAddr, to: IpAddr) {
        self.schedule(at, Event::ResetLink { from, to });
    }

    /// Breaks the ends at `host` of its connections with `peer`. The other ends learn of it when they send.
    pub(super) fn reset_ends(&mut self, host: IpAddr, peer: IpAddr) {
        self.note(|| format!("reset the connections of {host} with {peer}"));
        for connection in self.connections.values_mut() {
            if !connection.joins(host, peer) {
                continue;
            }
            for side in [Side::Client, Side::Server] {
                let end = connection.end_mut(side);
                if end.host == host {
                    end.fail(ErrorKind::ConnectionReset);
                }
            }
        }
    }

    /// Drops all later packets of the present connections between two hosts.
    pub(super) fn sever(&mut self, one: IpAddr, other: IpAddr) {
        self.note(|| format!("forgot the connections between {one} and {other}"));
        for connection in self.connections.values_mut() {
            if connection.joins(one, other) {
                connection.is_severed = true;
            }
        }
    }
}

/// Events and packets.
impl Network {
    /// Handles the events that are due; returns when the next one is.
    pub(super) fn advance(&mut self, now: Instant) -> Option<Instant> {
        while let Some(entry) = self.events.first_entry() {
            let at = entry.key().0;
            if at > now {
                return Some(at);
            }
            match entry.remove() {
                Event::Arrive(packet) => self.arrive(packet, now),
                Event::FailToConnect(connection) => self.fail_to_connect(connection),
                Event::Check(connection, side) => self.check(connection, side, now),
                Event::Unblock { from, to } => self.unblock(from, to, now),
                Event::ResetLink { from, to } => {
                    self.note(|| format!("{from} -> {to} is as usual"));
                    self.links.reset(from, to, now);
                }
            }
        }
        None
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        let key = (at, self.scheduled);
        self.scheduled += 1;
        self.events.insert(key, event);
        if self
            .events
            .first_key_value()
            .is_some_and(|(first, _)| *first == key)
        {
            self.changed.notify_one();
        }
    }

    fn send(&mut self, id: ConnectionId, to: Side, content: Content, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let source = connection.end(to.other()).host;
        let target = connection.end(to).host;
        let bytes = match &content {
            Content::Numbered(_, Piece::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        let at = self
            .links
            .arrival(source, target, bytes, &mut connection.numbers, now);
        let packet = Packet {
            connection: id,
            to,
            content,
        };
        self.schedule(at, Event::Arrive(packet));
    }

    fn send_piece(&mut self, id: ConnectionId, to: Side, piece: Piece, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let sender = connection.end_mut(to.other());
        let number = sender.next_sent;
        sender.next_sent += 1;
        self.send(id, to, Content::Numbered(number, piece), now);
    }

    /// Sends held packets again whose way is free now. As TCP's repetitions become rarer, it may take as long as they
    /// have been held.
    fn repeat_held(&mut self, now: Instant) {
        for (since, packet) in std::mem::take(&mut self.held) {
            let Some(connection) = self.connections.get_mut(&packet.connection) else {
                continue;
            };
            let source = connection.end(packet.to.other()).host;
            let target = connection.end(packet.to).host;
            let pause_max = now.duration_since(since).min(REPETITION_MAX);
            let pause = connection.numbers.duration(&(Duration::ZERO..=pause_max));
            if self.is_passable(source, target) {
                self.schedule(now + pause, Event::Arrive(packet));
            } else {
                self.held.push((since, packet));
            }
        }
    }

    fn has_power(&self, host: IpAddr) -> bool {
        self.hosts.get(&host).is_some_and(|host| host.has_power)
    }

    fn is_passable(&self, from: IpAddr, to: IpAddr) -> bool {
        self.has_power(to) && !self.links.is_blocked(from, to)
    }

    fn arrive(&mut self, packet: Packet, now: Instant) {
        let id = packet.connection;
        let to = packet.to;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.is_severed {
            return;
        }
        let source = connection.end(to.other()).host;
        let target = connection.end(to).host;
        if !self.is_passable(source, target) {
            let is_repeated = !matches!(packet.content, Content::Reset | Content::Refused);
            if is_repeated {
                self.held.push((now, packet));
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.end_mut(to).heard = now;
        match packet.content {
            Content::Open => self.on_open(id, now),
            Content::Opened => self.on_opened(id, now),
            Content::Refused => connection.client.fail(ErrorKind::ConnectionRefused),
            Content::Read(bytes) => {
                let end = connection.end_mut(to);
                end.outstanding = end.outstanding.saturating_sub(bytes);
                if let Some(waker) = end.writing.take() {
                    waker.wake();
                }
            }
            Content::Numbered(number, piece) => self.on_piece(id, to, number, piece, now),
            Content::Reset => {
                let end = connection.end_mut(to);
                end.fail(ErrorKind::ConnectionReset);
                if end.holder == Holder::System && !end.is_established {
                    self.release(id, to);
                }
            }
        }
    }

    /// A connection request reaches its server.
    fn on_open(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let server = connection.server.address;
        let is_local = connection.client.host == connection.server.host;
        let host = self.hosts.get(&connection.server.host);
        let listening = host
            .and_then(|host| host.listeners.get(&server.port()))
            .filter(|listening| is_local || !listening.loopback_only);
        match listening {
            None => {
                self.note(|| format!("{server} refused connection {id}"));
                self.send(id, Side::Client, Content::Refused, now);
                self.release(id, Side::Server);
            }
            Some(listening) if listening.backlog.len() >= BACKLOG_MAX => {
                let packet = Packet {
                    connection: id,
                    to: Side::Server,
                    content: Content::Open,
                };
                self.schedule(now + BACKLOG_PAUSE, Event::Arrive(packet));
            }
            Some(_) => self.send(id, Side::Client, Content::Opened, now),
        }
    }

    /// The server's answer reaches the client.
    fn on_opened(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let client = &mut connection.client;
        if !client.is_open() {
            self.send(id, Side::Server, Content::Reset, now);
            return;
        }
        client.is_established = true;
        client.wake();
        self.send_piece(id, Side::Server, Piece::Begin, now);
        self.schedule(now + CHECK_INTERVAL, Event::Check(id, Side::Client));
    }

    fn on_piece(&mut self, id: ConnectionId, to: Side, number: u64, piece: Piece, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let end = connection.end_mut(to);
        if !end.is_open() {
            if !matches!(piece, Piece::End) {
                self.send(id, to.other(), Content::Reset, now);
            }
            return;
        }
        end.early.insert(number, piece);
        let mut begins = false;
        while let Some(piece) = end.early.remove(&end.next_delivered) {
            end.next_delivered += 1;
            match piece {
                Piece::Begin => begins = true,
                Piece::Bytes(bytes) => end.inbox.extend(bytes),
                Piece::End => end.has_ended = true,
            }
        }
        if let Some(waker) = end.reading.take() {
            waker.wake();
        }
        if begins {
            self.enqueue(id, now);
        }
    }

    /// Adds a connection to the backlog of its listening socket.
    fn enqueue(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let server = &mut connection.server;
        let host = self.hosts.get_mut(&server.host);
        let listening = host.and_then(|host| host.listeners.get_mut(&server.address.port()));
        let Some(listening) = listening else {
            self.send(id, Side::Client, Content::Reset, now);
            self.release(id, Side::Server);
            return;
        };
        server.is_established = true;
        listening.backlog.push_back(id);
        if let Some(waker) = listening.accepting.take() {
            waker.wake();
        }
        self.schedule(now + CHECK_INTERVAL, Event::Check(id, Side::Server));
    }

    fn fail_to_connect(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client.is_established {
            connection.client.fail(ErrorKind::TimedOut);
        }
        if !connection.server.is_established {
            self.release(id, Side::Server);
        }
    }

    /// Ends a connection whose peer has been unreachable for too long.
    fn check(&mut self, id: ConnectionId, side: Side, now: Instant) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let end = connection.end(side);
        if !end.is_open() {
            return;
        }
        let peer = connection.end(side.other());
        let is_reachable = !connection.is_severed
            && self.is_passable(end.host, peer.host)
            && self.is_passable(peer.host, end.host);
        let has_probes = side == Side::Server;
        let is_peer_gone = !peer.is_open() && !peer.has_shut_down;
        let silence_max = if end.outstanding > 0 {
            Some(UNANSWERED_MAX)
        } else if has_probes {
            Some(KEEPALIVE_MAX)
        } else {
            None
        };
        let silence = now.duration_since(end.heard);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let end = connection.end_mut(side);
        if is_reachable {
            end.heard = now;
            if has_probes && is_peer_gone {
                end.fail(ErrorKind::ConnectionReset);
                return;
            }
        } else if silence_max.is_some_and(|silence_max| silence >= silence_max) {
            end.fail(ErrorKind::TimedOut);
            return;
        }
        self.schedule(now + CHECK_INTERVAL, Event::Check(id, side));
    }

    /// Records that nothing holds an end any more.
    fn release(&mut self, id: ConnectionId, side: Side) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.end_mut(side).holder = Holder::Nobody;
        if !connection.is_held() {
            self.connections.remove(&id);
        }
    }
}

/// Calls of processes.
impl Network {
    /// Opens a listening socket.
    pub(super) fn listen(
        &mut self,
        host: IpAddr,
        mut port: u16,
        loopback_only: bool,
    ) -> io::Result<ListenerId> {
        if port == 0 {
            port = self.take_port(host)?;
        }
        self.opened += 1;
        let number = self.opened;
        let state = self.host(host)?;
        if state.listeners.contains_key(&port) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let listening = Listening {
            number,
            loopback_only,
            backlog: VecDeque::new(),
            accepting: None,
        };
        state.listeners.insert(port, listening);
        Ok(ListenerId { host, port, number })
    }

    /// Closes a listening socket, and resets the connections that were not accepted.
    pub(super) fn close_listener(&mut self, id: ListenerId, now: Instant) {
        let Some(host) = self.hosts.get_mut(&id.host) else {
            return;
        };
        let is_open = host
            .listeners
            .get(&id.port)
            .is_some_and(|listening| listening.number == id.number);
        if !is_open {
            return;
        }
        let Some(listening) = host.listeners.remove(&id.port) else {
            return;
        };
        for connection in listening.backlog {
            self.send(connection, Side::Client, Content::Reset, now);
            self.release(connection, Side::Server);
        }
    }

    /// Returns the next connection of a listening socket, with its client's address.
    pub(super) fn poll_accept(
        &mut self,
        id: ListenerId,
        context: &mut Context<'_>,
    ) -> Poll<(ConnectionId, SocketAddr)> {
        let listening = self
            .hosts
            .get_mut(&id.host)
            .and_then(|host| host.listeners.get_mut(&id.port))
            .filter(|listening| listening.number == id.number);
        let Some(listening) = listening else {
            return Poll::Pending;
        };
        while let Some(accepted) = listening.backlog.pop_front() {
            let Some(connection) = self.connections.get_mut(&accepted) else {
                continue;
            };
            connection.server.holder = Holder::Process(2);
            let client = connection.client.address;
            self.note(|| format!("{} accepted connection {accepted}", id.host));
            return Poll::Ready((accepted, client));
        }
        listening.accepting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Asks for a connection. `client` is the address that the server sees, without a port.
    pub(super) fn connect(
        &mut self,
        host: IpAddr,
        client: IpAddr,
        server: SocketAddr,
        now: Instant,
    ) -> io::Result<ConnectionId> {
        let port = self.take_port(host)?;
        self.opened += 1;
        let id = self.opened;
        let client = SocketAddr::new(client, port);
        self.note(|| format!("{client} opens connection {id} to {server}"));
        let forth = self.links.settings(host, server.ip()).window_bytes;
        let back = self.links.settings(server.ip(), host).window_bytes;
        let connection = Connection {
            client: End::new(host, client, Holder::Process(1), forth, now),
            server: End::new(server.ip(), server, Holder::System, back, now),
            is_severed: false,
            numbers: SplitMix::new(self.numbers.number()),
        };
        self.connections.insert(id, connection);
        self.send(id, Side::Server, Content::Open, now);
        self.schedule(now + CONNECT_MAX, Event::FailToConnect(id));
        Ok(id)
    }

    pub(super) fn poll_connected(
        &mut self,
        id: ConnectionId,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Poll::Pending;
        };
        let client = &mut connection.client;
        if let Some(kind) = client.broken {
            return Poll::Ready(Err(kind.into()));
        }
        if client.is_established {
            client.holder = Holder::Process(2);
            return Poll::Ready(Ok(()));
        }
        client.reading = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_read(
        &mut self,
        id: ConnectionId,
        side: Side,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        now: Instant,
    ) -> Poll<io::Result<()>> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Poll::Pending;
        };
        let peer = connection.end(side.other()).host;
        let end = match side {
            Side::Client => &mut connection.client,
            Side::Server => &mut connection.server,
        };
        if end.holder == Holder::Nobody {
            return Poll::Pending;
        }
        if end.inbox.is_empty() {
            if let Some(kind) = end.broken {
                return Poll::Ready(Err(kind.into()));
            }
            if !end.has_ended {
                end.reading = Some(context.waker().clone());
                return Poll::Pending;
            }
            return Poll::Ready(Ok(()));
        }
        let most = buffer.remaining().min(end.inbox.len());
        let settings = self.links.settings(peer, end.host);
        let count = piece(most, settings, &mut connection.numbers);
        buffer.put_slice(&end.inbox.make_contiguous()[..count]);
        end.inbox.drain(..count);
        if count > 0 {
            self.send(id, side.other(), Content::Read(count), now);
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write(
        &mut self,
        id: ConnectionId,
        side: Side,
        context: &mut Context<'_>,
        bytes: &[u8],
        now: Instant,
    ) -> Poll<io::Result<usize>> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Poll::Pending;
        };
        let peer = connection.end(side.other()).host;
        let end = match side {
            Side::Client => &mut connection.client,
            Side::Server => &mut connection.server,
        };
        if end.holder == Holder::Nobody {
            return Poll::Pending;
        }
        if let Some(kind) = end.broken {
            return Poll::Ready(Err(kind.into()));
        }
        if end.has_shut_down {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let room = end.window.saturating_sub(end.outstanding);
        if room == 0 {
            end.writing = Some(context.waker().clone());
            return Poll::Pending;
        }
        let settings = self.links.settings(end.host, peer);
        let count = piece(bytes.len().min(room), settings, &mut connection.numbers);
        if end.outstanding == 0 {
            // The repetitions of this packet begin now.
            end.heard = now;
        }
        end.outstanding += count;
        self.send_piece(id, side.other(), Piece::Bytes(bytes[..count].to_vec()), now);
        Poll::Ready(Ok(count))
    }

    /// Limits the bytes that an end sends before its peer has read them.
    pub(super) fn limit_window(&mut self, id: ConnectionId, side: Side, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let end = connection.end_mut(side);
            end.window = end.window.min(bytes);
        }
    }

    /// Ends the stream to the peer.
    pub(super) fn shut_down(&mut self, id: ConnectionId, side: Side, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let end = connection.end_mut(side);
        if end.is_open() && !end.has_shut_down {
            end.has_shut_down = true;
            self.send_piece(id, side.other(), Piece::End, now);
        }
    }

    /// Drops a half of an end. Without its last half the connection is closed; unread data resets it.
    pub(super) fn drop_half(&mut self, id: ConnectionId, side: Side, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let end = connection.end_mut(side);
        match end.holder {
            Holder::Process(halves @ 2..) => end.holder = Holder::Process(halves - 1),
            Holder::Process(_) => {
                if !end.inbox.is_empty() && end.broken.is_none() {
                    self.send(id, side.other(), Content::Reset, now);
                }
                self.release(id, side);
            }
            Holder::System | Holder::Nobody => {}
        }
    }

    fn host(&mut self, host: IpAddr) -> io::Result<&mut Host> {
        match self.hosts.get_mut(&host) {
            Some(host) if host.has_power => Ok(host),
            _ => Err(ErrorKind::NetworkDown.into()),
        }
    }

    fn take_port(&mut self, host: IpAddr) -> io::Result<u16> {
        let host = self.host(host)?;
        loop {
            let port = host.next_port;
            host.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !host.listeners.contains_key(&port) {
                return Ok(port);
            }
        }
    }
}

/// Draws how many bytes one call transfers.
fn piece(most: usize, settings: &LinkSettings, numbers: &mut SplitMix) -> usize {
    let most = most.min(settings.piece_bytes_max);
    if most == 0 {
        return 0;
    }
    // Half of the calls transfer all they can.
    if numbers.below(2) == 0 {
        return most;
    }
    1 + numbers.choice(most)
}
