//! What processes see of a simulated network, and that it is repeatable.

use std::future::poll_fn;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::super::SplitMix;
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs a test on a paused clock.
fn simulate<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

/// Two hosts with a connection between them.
struct Pair {
    net: SimNet,
    client: Stream,
    server: Stream,
    acceptor: Box<dyn Acceptor>,
}

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

impl Pair {
    async fn new() -> Pair {
        Pair::with(SimNet::new(1, LinkSettings::default())).await
    }

    async fn with(net: SimNet) -> Pair {
        let server_net = net.host(ip(SERVER));
        let client_net = net.host(ip(CLIENT));
        let mut acceptor = server_net.listen("0.0.0.0:7000").await.unwrap();
        let connecting = client_net.connect("10.0.0.2:7000");
        let (client, accepted) = tokio::join!(connecting, accept(&mut *acceptor));
        let (server, peer) = accepted;
        assert_eq!(peer.ip(), ip(CLIENT));
        Pair {
            net,
            client: client.unwrap(),
            server,
            acceptor,
        }
    }
}

async fn accept(acceptor: &mut dyn Acceptor) -> (Stream, SocketAddr) {
    poll_fn(|context| acceptor.poll_accept(context))
        .await
        .unwrap()
}

async fn connect_error(net: &Arc<dyn Net>, address: &str) -> ErrorKind {
    net.connect(address).await.unwrap_err().kind()
}

async fn read(stream: &mut Stream) -> io::Result<u8> {
    stream.receiving.read_u8().await
}

async fn write(stream: &mut Stream, byte: u8) {
    stream.sending.write_all(&[byte]).await.unwrap();
}

/// Returns whether nothing can be read for an hour.
async fn is_silent(stream: &mut Stream) -> bool {
    timeout(HOUR, read(stream)).await.is_err()
}

/// Returns after how long a read fails, and how.
async fn failure(stream: &mut Stream) -> (Duration, ErrorKind) {
    let began = Instant::now();
    let error = read(stream).await.unwrap_err();
    (began.elapsed(), error.kind())
}

async fn send_all(mut sending: Box<dyn super::super::net::Sending>, bytes: &[u8]) {
    sending.write_all(bytes).await.unwrap();
    sending.shutdown().await.unwrap();
}

/// Sends bytes both ways over bad links that are blocked at times. Returns what was observed and how long it took.
fn transfer(seed: u64) -> (Vec<String>, Duration) {
    simulate(async {
        let began = Instant::now();
        let mut numbers = SplitMix::new(seed);
        let net = SimNet::new(seed, LinkSettings::draw(&mut numbers));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let observed = Arc::clone(&lines);
        net.observe(move |line| {
            let line = format!("{:?} {line}", began.elapsed());
            observed.lock().unwrap().push(line);
        });
        let pair = Pair::with(net).await;
        let request: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        let answer: Vec<u8> = request.iter().rev().copied().collect();
        let Pair {
            net,
            mut client,
            mut server,
            acceptor: _acceptor,
        } = pair;
        let hosts = [ip(CLIENT), ip(SERVER)];
        let faults = async {
            for _ in 0..5 {
                sleep(numbers.duration(&(Duration::ZERO..=SECOND))).await;
                let fault = loop {
                    let fault = NetFault::draw(&mut numbers, &hosts);
                    if matches!(
                        fault,
                        NetFault::BlockOneWay { .. }
                            | NetFault::Partition { .. }
                            | NetFault::Change { .. }
                    ) {
                        break fault;
                    }
                };
                net.inject(&fault);
            }
        };
        let mut asked = Vec::new();
        let mut answered = Vec::new();
        let (_, _, (), (), ()) = tokio::join!(
            async { client.receiving.read_to_end(&mut answered).await.unwrap() },
            async { server.receiving.read_to_end(&mut asked).await.unwrap() },
            send_all(client.sending, &request),
            send_all(server.sending, &answer),
            faults
        );
        assert_eq!(asked, request);
        assert_eq!(answered, answer);
        drop((client.receiving, server.receiving));
        assert_eq!(net.connections(), 0);
        let lines = lines.lock().unwrap().clone();
        (lines, began.elapsed())
    })
}

#[test]
fn bytes_arrive_in_order_over_bad_links() {
    let mut longest = Duration::ZERO;
    for seed in 0..100 {
        let (_, took) = transfer(seed);
        longest = longest.max(took);
    }
    assert!(longest > 10 * SECOND, "no link was bad: {longest:?}");
}

#[test]
fn seed_determines_course() {
    for seed in 0..10 {
        assert_eq!(transfer(seed), transfer(seed));
    }
    assert_ne!(transfer(1), transfer(2));
}

#[test]
fn connect_fails_as_tcp_does() {
    simulate(async {
        let net = SimNet::new(1, LinkSettings::default());
        let client = net.host(ip(CLIENT));
        let server = net.host(ip(SERVER));
        let refused = ErrorKind::ConnectionRefused;
        assert_eq!(connect_error(&client, "10.0.0.2:7000").await, refused);
        let _local = server.listen("localhost:7000").await.unwrap();
        assert_eq!(connect_error(&client, "10.0.0.2:7000").await, refused);
        server.connect("127.0.0.1:7000").await.unwrap();
        let began = Instant::now();
        net.cut_power(ip(SERVER));
        for address in ["10.0.0.2:7000", "10.0.0.9:7000"] {
            assert_eq!(connect_error(&client, address).await, ErrorKind::TimedOut);
        }
        assert_eq!(began.elapsed().as_secs(), 2 * 127);
        let invalid = ErrorKind::InvalidInput;
        assert_eq!(connect_error(&client, "somewhere").await, invalid);
        assert_eq!(net.connections(), 0);
    });
}

#[test]
fn listen_reserves_address() {
    simulate(async {
        let net = SimNet::new(1, LinkSettings::default());
        let host = net.host(ip(SERVER));
        let listening = host.listen("10.0.0.2:7000").await.unwrap();
        assert_eq!(
            listening.address().unwrap(),
            "10.0.0.2:7000".parse().unwrap()
        );
        let taken = host.listen("0.0.0.0:7000").await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        let foreign = host.listen("10.0.0.1:7000").await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        let any = host.listen("127.0.0.1:0").await.unwrap();
        assert_ne!(any.address().unwrap().port(), 0);
        drop(listening);
        host.listen("0.0.0.0:7000").await.unwrap();
    });
}

#[test]
fn route_names_both_ends() {
    simulate(async {
        let net = SimNet::new(1, LinkSettings::default());
        let host = net.host(ip(CLIENT));
        let route = host.route_to("10.0.0.2:7000").unwrap();
        assert_eq!((route.own, route.peer), (ip(CLIENT), ip(SERVER)));
        let route = host.route_to("127.0.0.1:7000").unwrap();
        assert_eq!(route.own, route.peer);
    });
}

#[test]
fn one_way_block_delays_one_direction() {
    simulate(async {
        let mut pair = Pair::new().await;
        pair.net.block(ip(CLIENT), ip(SERVER));
        write(&mut pair.client, 1).await;
        write(&mut pair.server, 2).await;
        assert_eq!(read(&mut pair.client).await.unwrap(), 2);
        let nothing = timeout(MINUTE / 2, read(&mut pair.server)).await;
        assert!(nothing.is_err(), "{nothing:?}");
        pair.net.unblock(ip(CLIENT), ip(SERVER));
        assert_eq!(read(&mut pair.server).await.unwrap(), 1);
    });
}

#[test]
fn writer_waits_for_slow_reader() {
    simulate(async {
        let mut pair = Pair::new().await;
        let bytes = vec![7; 1 << 20];
        let writing = pair.client.sending.write_all(&bytes);
        let stalled = timeout(MINUTE, writing).await;
        assert!(stalled.is_err(), "1 MiB fits into no window");
        let mut unread = Vec::new();
        drop(pair.client.sending);
        pair.server
            .receiving
            .read_to_end(&mut unread)
            .await
            .unwrap();
        let window = LinkSettings::default().window_bytes;
        assert_eq!(unread.len(), window);
    });
}

#[test]
fn limited_buffer_accepts_fewer_bytes() {
    simulate(async {
        let mut pair = Pair::new().await;
        pair.client.sending.limit_buffer(1000).unwrap();
        let writing = pair.client.sending.write_all(&[7; 2000]);
        assert!(timeout(MINUTE, writing).await.is_err());
        drop(pair.client.sending);
        let mut unread = Vec::new();
        pair.server
            .receiving
            .read_to_end(&mut unread)
            .await
            .unwrap();
        assert_eq!(unread.len(), 1000);
    });
}

#[test]
fn throughput_limits_transfer() {
    simulate(async {
        let links = LinkSettings {
            bytes_per_second: 1000,
            ..LinkSettings::default()
        };
        let pair = Pair::with(SimNet::new(1, links)).await;
        let Pair { client, server, .. } = pair;
        let began = Instant::now();
        let mut received = Vec::new();
        let mut receiving = server.receiving;
        let (_, ()) = tokio::join!(
            receiving.read_to_end(&mut received),
            send_all(client.sending, &[7; 60_000])
        );
        assert_eq!(began.elapsed().as_secs(), 60);
    });
}

#[test]
fn half_open_connection_ends_at_next_write() {
    simulate(async {
        let mut pair = Pair::new().await;
        let fault = NetFault::ResetEnds {
            host: ip(SERVER),
            peer: ip(CLIENT),
        };
        pair.net.inject(&fault);
        let reset = ErrorKind::ConnectionReset;
        assert_eq!(failure(&mut pair.server).await, (Duration::ZERO, reset));
        assert!(is_silent(&mut pair.client).await);
        write(&mut pair.client, 1).await;
        let (took, kind) = failure(&mut pair.client).await;
        assert!(kind == reset && took < SECOND, "{kind:?} after {took:?}");
        let refused = pair.client.sending.write_all(&[1]).await.unwrap_err();
        assert_eq!(refused.kind(), reset);
    });
}

#[test]
fn severed_connection_times_out() {
    simulate(async {
        let mut pair = Pair::new().await;
        let fault = NetFault::Sever {
            one: ip(CLIENT),
            other: ip(SERVER),
        };
        pair.net.inject(&fault);
        // The accepting end probes; the other one waits for an answer to what it sends.
        let (took, kind) = failure(&mut pair.server).await;
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!((MINUTE..MINUTE * 3 / 2).contains(&took), "{took:?}");
        assert!(is_silent(&mut pair.client).await);
        write(&mut pair.client, 1).await;
        let (took, kind) = failure(&mut pair.client).await;
        assert_eq!(kind, ErrorKind::TimedOut);
        assert_eq!(took.as_secs() / 60, 15);
        // A new connection works.
        let host = pair.net.host(ip(CLIENT));
        let connecting = host.connect("10.0.0.2:7000");
        let (again, _) = tokio::join!(connecting, accept(&mut *pair.acceptor));
        write(&mut again.unwrap(), 1).await;
    });
}

#[test]
fn peer_learns_of_power_cut_after_restart() {
    simulate(async {
        let mut pair = Pair::new().await;
        pair.net.cut_power(ip(SERVER));
        drop(pair.server);
        write(&mut pair.client, 1).await;
        let nothing = timeout(5 * MINUTE, read(&mut pair.client)).await;
        assert!(nothing.is_err(), "{nothing:?}");
        pair.net.restore_power(ip(SERVER));
        let (took, kind) = failure(&mut pair.client).await;
        assert_eq!(kind, ErrorKind::ConnectionReset);
        assert!(took <= MINUTE + SECOND, "{took:?}");
        drop(pair.client);
        assert_eq!(pair.net.connections(), 0);
    });
}

#[test]
fn closed_connection_ends_or_resets() {
    simulate(async {
        let mut pair = Pair::new().await;
        write(&mut pair.client, 1).await;
        drop(pair.client);
        assert_eq!(read(&mut pair.server).await.unwrap(), 1);
        let end = read(&mut pair.server).await.unwrap_err();
        assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
        drop(pair.server);
        assert_eq!(pair.net.connections(), 0);
        // Unread data resets the connection.
        let mut pair = Pair::new().await;
        write(&mut pair.client, 1).await;
        sleep(SECOND).await;
        drop(pair.server);
        sleep(SECOND).await;
        let error = pair.client.sending.write_all(&[2]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn closed_listener_resets_waiting_connections() {
    simulate(async {
        let mut pair = Pair::new().await;
        let host = pair.net.host(ip(CLIENT));
        let mut waiting = host.connect("10.0.0.2:7000").await.unwrap();
        sleep(SECOND).await;
        drop(pair.acceptor);
        let (_, kind) = failure(&mut waiting).await;
        assert_eq!(kind, ErrorKind::ConnectionReset);
        write(&mut pair.client, 1).await;
        assert_eq!(read(&mut pair.server).await.unwrap(), 1);
    });
}

#[test]
fn dropped_connect_leaves_nothing() {
    simulate(async {
        let net = SimNet::new(1, LinkSettings::default());
        let host = net.host(ip(CLIENT));
        let server = net.host(ip(SERVER));
        let _listening = server.listen("0.0.0.0:7000").await.unwrap();
        net.block(ip(SERVER), ip(CLIENT));
        let connecting = timeout(SECOND, host.connect("10.0.0.2:7000")).await;
        assert!(connecting.is_err(), "no answer can arrive");
        net.heal();
        sleep(MINUTE).await;
        assert_eq!(net.connections(), 0);
    });
}

#[test]
fn drawn_faults_end() {
    simulate(async {
        let pair = Pair::new().await;
        let mut numbers = SplitMix::new(3);
        for _ in 0..100 {
            let fault = NetFault::draw(&mut numbers, &[ip(CLIENT), ip(SERVER)]);
            pair.net.inject(&fault);
            sleep(SECOND).await;
        }
        sleep(3 * MINUTE).await;
        let host = pair.net.host(ip(CLIENT));
        let began = Instant::now();
        host.connect("10.0.0.2:7000").await.unwrap();
        assert!(began.elapsed() < SECOND, "a link is still changed");
    });
}
