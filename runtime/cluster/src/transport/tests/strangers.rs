//! Peers that do not belong to the cluster, or use another protocol version: the server refuses each with a
//! line that names the reason, and continues.

use std::io::ErrorKind;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::handshake::NOISE_BYTES;
use super::super::preamble::{ANSWER_BYTES, GREETING_BYTES};
use super::*;

/// Sends bytes and shuts down; returns the answer until the server disconnects.
async fn send_and_read(server: &EchoServer, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let mut answer = Vec::new();
    // The server may disconnect before it has read everything.
    let sent = async { socket.write_all(bytes).await.and(socket.shutdown().await) }.await;
    let ended = socket.read_to_end(&mut answer).await.map(|_| ());
    for result in [sent, ended] {
        let hung_up = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(
            result.as_ref().is_ok() || hung_up.contains(&result.as_ref().unwrap_err().kind()),
            "{result:?}"
        );
    }
    answer
}

/// Checks that a peer that sends these bytes is refused with such a line, and with this answer.
#[track_caller]
fn check_refused(bytes: &[u8], answered: &[u8], line: &str) {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        assert_eq!(send_and_read(&server, bytes).await, answered);
        let lines = server.refusals(1).await;
        assert!(
            lines[0].starts_with("refused 127.0.0.1:") && lines[0].contains(line),
            "{lines:?}"
        );
        server.check_serves(&secret).await;
    });
}

#[test]
fn peer_without_magic_is_refused() {
    check_refused(
        b"GET / HTTP/1.1\r\n\r\n",
        b"",
        "its first bytes are `GET ` instead of `NAPR`",
    );
    check_refused(
        &[0xff; 1 << 20],
        b"",
        r"its first bytes are `\xff\xff\xff\xff`",
    );
}

#[test]
fn peer_without_secret_is_refused() {
    let mut bytes = preamble::greeting(Role::Worker).to_vec();
    bytes.extend_from_slice(&[0x5a; NOISE_BYTES]);
    check_refused(&bytes, &preamble::answer(), "the peer has another secret");
}

#[test]
fn peer_with_another_secret_is_refused_with_reason() {
    run(async {
        let secret = Secret::generate().unwrap();
        let other = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let address = server.address.to_string();
        let refused = connect(&address, Role::Worker, &other, PATIENCE)
            .await
            .unwrap_err();
        assert!(
            matches!(refused, TransportError::SecretRefused),
            "{refused}"
        );
        let theirs = other.clone();
        let blocking = move || {
            blocking::connect(&address, Role::Data, &theirs, PATIENCE, PATIENCE).unwrap_err()
        };
        let refused = tokio::task::spawn_blocking(blocking).await.unwrap();
        assert!(
            matches!(refused, TransportError::SecretRefused),
            "{refused}"
        );
        for line in server.refusals(2).await {
            assert!(
                line.contains("give it a copy of the cluster's secret file"),
                "{line}"
            );
        }
        server.check_serves(&secret).await;
    });
}

#[test]
fn server_with_another_secret_is_rejected() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let secret = Secret::generate().unwrap();
        let impostor = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut opening = [0; OPENING_BYTES];
            socket.read_exact(&mut opening).await.unwrap();
            socket.write_all(&preamble::answer()).await.unwrap();
            socket.write_all(&[7; NOISE_BYTES]).await.unwrap();
            assert_eq!(
                socket.read(&mut opening).await.unwrap_or(0),
                0,
                "a client spoke to an impostor"
            );
        };
        let (connected, ()) =
            tokio::join!(connect(&address, Role::Worker, &secret, PATIENCE), impostor);
        assert!(matches!(connected, Err(TransportError::OtherSecret)));
    });
}

#[test]
fn client_of_another_version_is_refused_with_both_versions() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let mut opening = opening(&secret);
        opening[4..6].copy_from_slice(&513_u16.to_le_bytes());
        // Enough for a client of any version to report the mismatch.
        assert_eq!(send_and_read(&server, &opening).await, preamble::answer());
        let lines = server.refusals(1).await;
        assert!(lines[0].contains("the peer has 513"), "{lines:?}");
        assert!(
            lines[0].contains(&format!("this program has {NETWORK_VERSION}")),
            "{lines:?}"
        );
        server.check_serves(&secret).await;
    });
}

#[test]
fn server_of_another_version_is_rejected_with_its_version() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let secret = Secret::generate().unwrap();
        let answering = async {
            for _ in 0..2 {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut opening = [0; OPENING_BYTES];
                socket.read_exact(&mut opening).await.unwrap();
                socket.write_all(b"NAPR\x09\x00").await.unwrap();
            }
        };
        let connecting = async {
            let error = connect(&address, Role::Client, &secret, PATIENCE)
                .await
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("the peer has 9") && error.contains("run the same napreduce"),
                "{error}"
            );
            let address = address.clone();
            let key = secret.clone();
            let blocking = move || {
                blocking::connect(&address, Role::Data, &key, PATIENCE, PATIENCE).unwrap_err()
            };
            let error = tokio::task::spawn_blocking(blocking).await.unwrap();
            assert!(
                matches!(error, TransportError::OtherVersion { theirs: 9 }),
                "{error}"
            );
        };
        tokio::join!(answering, connecting);
    });
}

#[test]
fn server_of_another_protocol_is_rejected_with_its_bytes() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let secret = Secret::generate().unwrap();
        let answering = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await.unwrap();
            socket
        };
        let (connected, _held) = tokio::join!(
            connect(&address, Role::Client, &secret, PATIENCE),
            answering
        );
        let error = connected.unwrap_err().to_string();
        assert!(
            error.contains("first bytes are `SSH-` instead of `NAPR`"),
            "{error}"
        );
    });
}

#[test]
fn unknown_role_is_refused() {
    let mut bytes = preamble::greeting(Role::Worker).to_vec();
    bytes[6] = 9;
    check_refused(&bytes, &preamble::answer(), "unknown role 9");
}

#[test]
fn role_or_job_changed_in_transit_is_refused() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        for (count, at) in (1..).zip([6, GREETING_BYTES - 1]) {
            let mut opening = opening(&secret);
            opening[at] = 1;
            assert_eq!(send_and_read(&server, &opening).await, preamble::answer());
            assert!(server.refusals(count).await[count - 1].contains("another secret"));
        }
    });
}

/// Records the bytes that a client sends in a whole session.
async fn record_session(server: &EchoServer, secret: &Secret) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let between = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut onward = TcpStream::connect(server.address).await.unwrap();
        let mut recorded = Vec::new();
        let mut forward = [0; 4096];
        let mut back = [0; 4096];
        loop {
            tokio::select! {
                count = client.read(&mut forward) => match count.unwrap() {
                    0 => return recorded,
                    count => {
                        recorded.extend_from_slice(&forward[..count]);
                        onward.write_all(&forward[..count]).await.unwrap();
                    }
                },
                count = onward.read(&mut back) => client.write_all(&back[..count.unwrap()]).await.unwrap(),
            }
        }
    };
    let session = async {
        let mut connection = connect(&address, Role::Client, secret, PATIENCE)
            .await
            .unwrap();
        connection.send(&"kill everything").await.unwrap();
        assert_eq!(
            connection.receive::<String>().await.unwrap().as_deref(),
            Some("kill everything")
        );
    };
    tokio::join!(between, session).0
}

#[test]
fn replayed_session_is_refused_before_first_message() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let session = record_session(&server, &secret).await;
        assert!(
            session.len() > OPENING_BYTES + 18,
            "the record is too short"
        );
        // The first message still fits, so the server answers; then it notices.
        let answer = send_and_read(&server, &session).await;
        assert_eq!(
            answer.len(),
            ANSWER_BYTES + NOISE_BYTES,
            "the replay was echoed"
        );
        let lines = server.refusals(1).await;
        assert!(lines[0].contains("a replay of an earlier one"), "{lines:?}");
        server.check_serves(&secret).await;
    });
}

#[test]
fn random_bytes_are_refused() {
    let secret = Secret::generate().unwrap();
    // Random bytes, and random bytes after a valid beginning.
    let right = opening(&secret);
    let start = prop_oneof![Just(0), 0..=OPENING_BYTES];
    let noise = proptest::collection::vec(any::<u8>(), 0..200);
    run(async {
        let server = EchoServer::start(&secret).await;
        let mut runner = TestRunner::new(Config::default());
        for count in 1..=300 {
            let (start, noise) = (&start, &noise).new_tree(&mut runner).unwrap().current();
            let bytes = [&right[..start], &noise].concat();
            send_and_read(&server, &bytes).await;
            let lines = server.refusals(count).await;
            assert!(
                lines[count - 1].starts_with("refused 127.0.0.1:"),
                "{bytes:?}: {lines:?}"
            );
        }
        server.check_serves(&secret).await;
    });
}

#[test]
fn truncated_handshake_is_refused() {
    let secret = Secret::generate().unwrap();
    let opening = opening(&secret);
    run(async {
        let server = EchoServer::start(&secret).await;
        for length in 0..=OPENING_BYTES {
            let mut socket = TcpStream::connect(server.address).await.unwrap();
            socket.write_all(&opening[..length]).await.unwrap();
            socket.shutdown().await.unwrap();
            let lines = server.refusals(length + 1).await;
            assert!(
                lines[length].contains("closed the connection before sending its"),
                "{}",
                lines[length]
            );
        }
        server.check_serves(&secret).await;
    });
}
