//! Peers with the secret: messages of all sizes, both kinds of client, and the change to unencrypted data.

use std::io::{Read, Write};

use tokio::net::TcpListener;

use super::super::connection::accept;
use super::*;

/// Two ends of one connection.
async fn pair(role: Role) -> (Connection, Connection) {
    let secret = Secret::generate().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepting = async {
        let (socket, _) = listener.accept().await.unwrap();
        accept(socket.into(), &secret, &random(), PATIENCE)
            .await
            .unwrap()
    };
    let key = role.key(&secret);
    let connecting = connect(&address, role, &key, PATIENCE);
    let ((asked, server), client) = tokio::join!(accepting, connecting);
    assert_eq!(asked, role);
    (client.unwrap(), server)
}

#[test]
fn messages_arrive_in_order_in_both_directions() {
    run(async {
        for role in [Role::Worker, Role::Client, Role::Data, Role::Task(JobId(7))] {
            let (mut client, mut server) = pair(role).await;
            for number in 0..100_u32 {
                client.send(&number).await.unwrap();
                server.send(&format!("answer {number}")).await.unwrap();
            }
            for number in 0..100_u32 {
                assert_eq!(server.receive::<u32>().await.unwrap(), Some(number));
                let answer = client.receive::<String>().await.unwrap();
                assert_eq!(answer, Some(format!("answer {number}")));
            }
            drop(client);
            assert_eq!(server.receive::<u32>().await.unwrap(), None);
        }
    });
}

#[test]
fn messages_of_any_size_pass() {
    run(async {
        let (client, server) = pair(Role::Data).await;
        let (mut sender, _held) = client.split();
        let (_also_held, mut receiver) = server.split();
        let sizes = [
            0,
            1,
            65_514,
            65_515,
            65_516,
            65_519,
            65_520,
            131_038,
            1 << 20,
            20 << 20,
        ];
        let message = |size: usize| (0..size).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
        let sending = async {
            for size in sizes {
                sender.send(&message(size)).await.unwrap();
            }
            sender
                .send_all(sizes[..8].iter().map(|size| message(*size)))
                .await
                .unwrap();
        };
        let receiving = async {
            for size in sizes.into_iter().chain(sizes[..8].iter().copied()) {
                assert!(
                    receiver.receive::<Vec<u8>>().await.unwrap().unwrap() == message(size),
                    "{size}"
                );
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn dropped_receive_loses_nothing() {
    run(async {
        let (client, mut server) = pair(Role::Worker).await;
        let (mut sender, _held) = client.split();
        let message = vec![7_u8; 300_000];
        let (dropped_once, begin) = tokio::sync::oneshot::channel();
        let sending = tokio::spawn(async move {
            begin.await.expect("a receive was dropped");
            for _ in 0..20 {
                sender.send(&message).await.unwrap();
            }
            sender
        });
        tokio::select! {
            biased;
            message = server.receive::<Vec<u8>>() => panic!("nothing was sent: {message:?}"),
            () = tokio::task::yield_now() => dropped_once.send(()).unwrap(),
        }
        let mut received = 0;
        while received < 20 {
            tokio::select! {
                biased;
                message = server.receive::<Vec<u8>>() => {
                    assert_eq!(message.unwrap().unwrap(), vec![7_u8; 300_000]);
                    received += 1;
                }
                () = tokio::task::yield_now() => {}
            }
        }
        sending.await.unwrap();
    });
}

#[test]
fn send_to_peer_that_takes_nothing_fails_after_silence() {
    run(async {
        let (mut client, _server) = pair(Role::Client).await;
        client.limit_silence(Duration::from_millis(100));
        let [clock, _] = client.transfers();
        let error = client.send(&vec![7_u8; 32 << 20]).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "timed out waiting for the peer to accept data (100ms)"
        );
        assert!(clock.silence().unwrap() >= Duration::from_millis(100));
    });
}

#[test]
fn message_that_stops_arriving_fails_after_silence() {
    run(async {
        let (client, mut server) = pair(Role::Client).await;
        server.limit_silence(Duration::from_millis(100));
        let (mut sender, _held) = client.split();
        let [_, clock] = server.transfers();
        let message = vec![7_u8; 32 << 20];
        let sending = async {
            let has_begun = async {
                while clock.silence().is_none() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                () = has_begun => {}
                sent = sender.send(&message) => panic!("it fits into no buffer: {sent:?}"),
            }
        };
        let ((), received) = tokio::join!(sending, server.receive::<Vec<u8>>());
        assert_eq!(
            received.unwrap_err().to_string(),
            "timed out waiting for the rest of a message (100ms)"
        );
    });
}

#[test]
fn silence_between_messages_is_unlimited() {
    run(async {
        let (mut client, mut server) = pair(Role::Client).await;
        server.limit_silence(Duration::from_millis(1));
        let receiving = server.receive::<u32>();
        let mut receiving = std::pin::pin!(receiving);
        let waited = tokio::time::timeout(Duration::from_millis(50), &mut receiving).await;
        assert!(waited.is_err(), "nothing has arrived");
        client.send(&7_u32).await.unwrap();
        assert_eq!(receiving.await.unwrap(), Some(7));
    });
}

/// The socket of a connection that continues unencrypted.
fn plain(connection: Connection) -> Result<std::net::TcpStream, TransportError> {
    connection.into_blocking(PATIENCE)?.into_plain()
}

#[test]
fn into_plain_continues_after_last_message() {
    run(async {
        let (mut client, mut server) = pair(Role::Data).await;
        client.send(&"bytes, please").await.unwrap();
        assert_eq!(
            server.receive::<String>().await.unwrap().as_deref(),
            Some("bytes, please")
        );
        server.send(&"here they come").await.unwrap();
        plain(server).unwrap().write_all(b"plain bytes").unwrap();
        // By now the bytes are in the same socket buffer as the message.
        assert_eq!(
            client.receive::<String>().await.unwrap().as_deref(),
            Some("here they come")
        );
        let mut rest = Vec::new();
        plain(client).unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"plain bytes");
    });
}

#[test]
fn into_plain_inside_message_fails() {
    run(async {
        let (mut client, server) = pair(Role::Data).await;
        let (mut sender, _held) = server.split();
        sender.send_all(["first", "second"]).await.unwrap();
        assert_eq!(
            client.receive::<String>().await.unwrap().as_deref(),
            Some("first")
        );
        assert!(matches!(plain(client), Err(TransportError::InsideMessage)));
    });
}

#[test]
fn blocking_client_exchanges_messages_with_server() {
    run(async {
        let secret = Secret::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let key = secret.clone();
        let client = tokio::task::spawn_blocking(move || {
            let mut connection =
                blocking::connect(&address, Role::Data, &key, PATIENCE, PATIENCE).unwrap();
            connection.send(&vec![9_u8; 1 << 20]).unwrap();
            assert_eq!(
                connection.receive::<Vec<u8>>().unwrap().unwrap().len(),
                2 << 20
            );
            let mut rest = String::new();
            let mut plain = connection.into_plain().unwrap();
            plain.read_to_string(&mut rest).unwrap();
            rest
        });
        let (socket, _) = listener.accept().await.unwrap();
        let (role, mut server) = accept(socket.into(), &secret, &random(), PATIENCE)
            .await
            .unwrap();
        assert_eq!(role, Role::Data);
        assert_eq!(
            server.receive::<Vec<u8>>().await.unwrap().unwrap().len(),
            1 << 20
        );
        server.send(&vec![1_u8; 2 << 20]).await.unwrap();
        plain(server).unwrap().write_all(b"the rest").unwrap();
        assert_eq!(client.await.unwrap(), "the rest");
    });
}

#[test]
fn listener_serves_members_of_cluster() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        for _ in 0..10 {
            server.check_serves(&secret).await;
        }
    });
}
