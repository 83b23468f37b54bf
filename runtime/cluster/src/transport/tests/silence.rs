//! Absent, silent and slow peers are dropped at a deadline.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::connection::accept;
use super::*;

const BRIEF: Duration = Duration::from_millis(300);
const IMPATIENT: Limits = Limits {
    pending_max: 256,
    deadline: BRIEF,
    crowded_deadline: BRIEF,
};

#[test]
fn silent_peer_is_dropped_at_deadline() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start_with(&secret, IMPATIENT).await;
        let opening = opening(&secret);
        let cases = [
            (0, "its first bytes"),
            (3, "its first bytes"),
            (11, "its proof"),
            (59, "its confirmation"),
        ];
        for (count, (length, awaited)) in cases.into_iter().enumerate() {
            let mut socket = TcpStream::connect(server.address).await.unwrap();
            socket.write_all(&opening[..length]).await.unwrap();
            let lines = server.refusals(count + 1).await;
            assert!(
                lines[count].contains(&format!("timed out waiting for {awaited} (300ms)")),
                "{lines:?}"
            );
            let mut rest = Vec::new();
            socket.read_to_end(&mut rest).await.unwrap();
        }
        server.check_serves(&secret).await;
    });
}

#[test]
fn dribbling_peer_is_dropped_at_deadline() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start_with(&secret, IMPATIENT).await;
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let mut bytes = preamble::greeting(Role::Client)
            .into_iter()
            .chain(std::iter::repeat(0));
        let dribbling = async {
            // Each byte arrives before the deadline, but the handshake never completes.
            while socket.write_all(&[bytes.next().unwrap()]).await.is_ok() {
                tokio::time::sleep(BRIEF / 5).await;
            }
        };
        let (lines, ()) = tokio::join!(server.refusals(1), dribbling);
        assert!(lines[0].contains("timed out waiting for its"), "{lines:?}");
    });
}

#[test]
fn connect_to_silent_server_times_out() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let secret = Secret::generate().unwrap();
        // Half open: the system completes the connection, no process accepts it.
        let error = connect(&address, Role::Client, &secret, BRIEF)
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                TransportError::TimedOut {
                    awaited: "the server's version",
                    ..
                }
            ),
            "{error}"
        );
        let key = secret.clone();
        let blocking =
            move || blocking::connect(&address, Role::Data, &key, BRIEF, PATIENCE).unwrap_err();
        let error = tokio::task::spawn_blocking(blocking).await.unwrap();
        assert!(
            matches!(
                error,
                TransportError::TimedOut {
                    awaited: "the server's version",
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn blocking_connection_to_silent_peer_times_out() {
    run(async {
        let secret = Secret::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let key = secret.clone();
        let client = tokio::task::spawn_blocking(move || {
            let mut connection =
                blocking::connect(&address, Role::Data, &key, PATIENCE, BRIEF).unwrap();
            let unheard = connection.receive::<u8>().unwrap_err();
            assert!(
                matches!(
                    unheard,
                    TransportError::TimedOut {
                        awaited: "its next message",
                        ..
                    }
                ),
                "{unheard}"
            );
            let unread = connection.send(&vec![0_u8; 60 << 20]).unwrap_err();
            assert!(
                matches!(
                    unread,
                    TransportError::TimedOut {
                        awaited: "room for our message",
                        ..
                    }
                ),
                "{unread}"
            );
        });
        let (socket, _) = listener.accept().await.unwrap();
        let _silent = accept(socket.into(), &secret, &random(), PATIENCE)
            .await
            .unwrap();
        client.await.unwrap();
    });
}

#[test]
fn connect_without_listener_error_names_address() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let secret = Secret::generate().unwrap();
        let error = connect(&address, Role::Client, &secret, PATIENCE)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("cannot connect to {address}: ")),
            "{error}"
        );
        let key = secret.clone();
        let blocking =
            move || blocking::connect(&address, Role::Data, &key, PATIENCE, PATIENCE).unwrap_err();
        let error = tokio::task::spawn_blocking(blocking).await.unwrap();
        assert!(
            matches!(error, TransportError::Unreachable { .. }),
            "{error}"
        );
    });
}

#[test]
fn bind_to_used_address_error_names_address() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let address = server.address.to_string();
        let error = Listener::bind(&World::real(), &address, secret, |_| {})
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with(&format!("cannot listen on {address}: ")),
            "{error}"
        );
    });
}

#[test]
fn crowded_listener_drops_oldest_handshake() {
    run(async {
        let secret = Secret::generate().unwrap();
        // Strangers may stay for long, unless another peer waits.
        let limits = Limits {
            pending_max: 8,
            deadline: 2 * PATIENCE,
            crowded_deadline: BRIEF,
        };
        let server = EchoServer::start_with(&secret, limits).await;
        let mut flood = Vec::new();
        for _ in 0..20 {
            flood.push(TcpStream::connect(server.address).await.unwrap());
        }
        // The last peer is served although no other handshake has ended.
        server.check_serves(&secret).await;
        let lines = server.refusals(13).await;
        assert!(
            lines
                .iter()
                .all(|line| line.contains("too many pending handshakes (limit 8)")),
            "{lines:?}"
        );
        for (line, socket) in lines.iter().zip(&flood) {
            let oldest = socket.local_addr().unwrap().to_string();
            assert!(line.contains(&oldest), "{line}, but {oldest} is older");
        }
    });
}
