//! Connections over a simulated network, in simulated time: links that are bad, break, or fall silent.

use std::net::{IpAddr, Ipv4Addr};

use napreduce_local::world::{LinkSettings, NetFault, Node, SimNet, SplitMix};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MESSAGES: u32 = 100;

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// Runs a test on a paused clock.
fn simulate<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

/// A client's and a server's host on one network.
struct Hosts {
    net: SimNet,
    client: World,
    server: World,
    secret: Secret,
}

impl Hosts {
    fn new(seed: u64, links: LinkSettings) -> Hosts {
        let net = SimNet::new(seed, links);
        let world = |last| {
            let mut world = Node::new("host", seed + u64::from(last), 0).world();
            world.net = net.host(ip(last));
            world
        };
        Hosts {
            client: world(CLIENT),
            server: world(SERVER),
            secret: Secret::from_bytes([7; 32]),
            net,
        }
    }

    async fn listen(&self) -> Listener {
        let address = "0.0.0.0:7000";
        Listener::bind(&self.server, address, self.secret.clone(), |_| {})
            .await
            .unwrap()
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let address = "10.0.0.2:7000";
        super::super::connect(
            &self.client,
            address,
            Role::Worker,
            &self.secret,
            HANDSHAKE_DEADLINE,
        )
        .await
    }

    /// Returns both ends of a connection.
    async fn pair(&self) -> (Connection, Connection) {
        let mut listener = self.listen().await;
        let (client, incoming) = tokio::join!(self.connect(), listener.accept());
        (client.unwrap(), incoming.connection)
    }
}

/// Exchanges messages until one side fails. Returns how many answers arrived, in how long.
async fn exchange(hosts: &Hosts) -> (u32, Duration) {
    let began = Instant::now();
    let mut listener = hosts.listen().await;
    let serving = tokio::spawn(async move {
        loop {
            let mut connection = listener.accept().await.connection;
            tokio::spawn(async move { echo(&mut connection).await });
        }
    });
    let mut answered = 0;
    if let Ok(mut connection) = hosts.connect().await {
        let filling = "x".repeat(300);
        while answered < MESSAGES {
            let message = format!("{answered} {filling}");
            if connection.send(&message).await.is_err() {
                break;
            }
            let answer = connection.receive_within::<String>(60 * SECOND, "an echo");
            match answer.await {
                Ok(answer) => assert_eq!(answer, message),
                Err(_) => break,
            }
            answered += 1;
        }
    }
    serving.abort();
    (answered, began.elapsed())
}

#[test]
fn faults_delay_or_break_connection_but_never_change_messages() {
    let mut completed = 0;
    let mut broken = 0;
    for seed in 0..60 {
        let run = || {
            simulate(async {
                let mut numbers = SplitMix::new(seed);
                let hosts = Hosts::new(seed, LinkSettings::draw(&mut numbers));
                let faults = async {
                    for _ in 0..3 {
                        sleep(numbers.duration(&(Duration::ZERO..=5 * SECOND))).await;
                        let fault = NetFault::draw(&mut numbers, &[ip(CLIENT), ip(SERVER)]);
                        hosts.net.inject(&fault);
                    }
                };
                let (exchanged, ()) = tokio::join!(exchange(&hosts), faults);
                exchanged
            })
        };
        let (answered, took) = run();
        assert_eq!(run(), (answered, took), "seed {seed} is not repeatable");
        // Each message waits for a minute at most.
        assert!(took < MESSAGES * 80 * SECOND, "seed {seed}: {took:?}");
        if answered == MESSAGES {
            completed += 1;
        } else {
            broken += 1;
        }
    }
    assert!(completed >= 10 && broken >= 10, "{completed}, {broken}");
}

#[test]
fn handshake_bytes_follow_from_seed() {
    simulate(async {
        let opening = |seed| {
            let hosts = Hosts::new(seed, LinkSettings::default());
            let opened = Initiator::open(Role::Client, &hosts.secret, &hosts.client.random);
            opened.unwrap().1
        };
        assert_eq!(opening(1), opening(1));
        assert_ne!(opening(1), opening(2));
    });
}

#[test]
fn partition_inside_message_fails_after_silence() {
    simulate(async {
        let hosts = Hosts::new(1, LinkSettings::default());
        let (mut client, mut server) = hosts.pair().await;
        let message = vec![7_u8; 8 << 20];
        let cut = async {
            while server.transfers()[1].silence().is_none() {
                tokio::select! {
                    biased;
                    received = server.receive::<Vec<u8>>() => panic!("it is too long: {received:?}"),
                    () = sleep(Duration::from_millis(1)) => {}
                }
            }
            hosts.net.block(ip(CLIENT), ip(SERVER));
            let cut = Instant::now();
            let error = server.receive::<Vec<u8>>().await.unwrap_err();
            (error, cut.elapsed())
        };
        let (sent, (error, took)) = tokio::join!(client.send(&message), cut);
        assert_eq!(
            error.to_string(),
            "timed out waiting for the rest of a message (20s)"
        );
        // The last bytes arrived some milliseconds before the cut.
        assert!(took <= 20 * SECOND && took > 19 * SECOND, "{took:?}");
        let unsent = sent.unwrap_err().to_string();
        assert_eq!(
            unsent,
            "timed out waiting for the peer to accept data (20s)"
        );
    });
}

#[test]
fn dead_host_ends_idle_connection_of_listener() {
    simulate(async {
        let hosts = Hosts::new(1, LinkSettings::default());
        let (client, mut server) = hosts.pair().await;
        hosts.net.cut_power(ip(CLIENT));
        let began = Instant::now();
        let error = server.receive::<u8>().await.unwrap_err();
        assert!(matches!(error, TransportError::Io(_)), "{error}");
        assert!(began.elapsed() < 90 * SECOND, "{:?}", began.elapsed());
        drop(client);
    });
}

#[test]
fn stranger_is_dropped_at_handshake_deadline() {
    simulate(async {
        let hosts = Hosts::new(1, LinkSettings::default());
        let mut listener = hosts.listen().await;
        let accepting = tokio::spawn(async move { listener.accept().await.peer });
        let mut stranger = hosts.client.net.connect("10.0.0.2:7000").await.unwrap();
        stranger.sending.write_all(b"NAP").await.unwrap();
        let began = Instant::now();
        let mut unread = [0];
        let read = tokio::io::AsyncReadExt::read(&mut stranger.receiving, &mut unread);
        assert_eq!(read.await.unwrap(), 0);
        assert_eq!(began.elapsed().as_secs(), HANDSHAKE_DEADLINE.as_secs());
        accepting.abort();
    });
}

#[test]
fn simulated_connection_has_no_blocking_socket() {
    simulate(async {
        let hosts = Hosts::new(1, LinkSettings::default());
        let (client, _server) = hosts.pair().await;
        let error = client.into_blocking(SECOND).unwrap_err().to_string();
        assert_eq!(error, "the connection broke: not a TCP connection");
    });
}
