//! Peers with the secret that send invalid data: the connection ends with an error, and memory grows with
//! received data, never with claimed lengths.

use std::io::ErrorKind;

use napreduce_protocol::{Incoming, ToCoordinator};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::connection::accept;
use super::super::handshake::{Initiator, Keys, NOISE_BYTES, Responder};
use super::super::preamble::ANSWER_BYTES;
use super::super::records::{Opener, PLAINTEXT_BYTES_MAX, Sealer};
use super::*;

const FRAME_BYTES_MAX: u32 = 64 << 20;

/// The keys of both ends, without sockets.
fn keys() -> (Keys, Keys) {
    let secret = Secret::generate().unwrap();
    let (initiator, opening) = Initiator::open(Role::Client, &secret, &random()).unwrap();
    let (greeting, proof) = opening.split_first_chunk().unwrap();
    let (responder, reply) =
        Responder::reply(greeting, proof.try_into().unwrap(), &secret, &random()).unwrap();
    let (client, confirmation) = initiator
        .finish(reply[ANSWER_BYTES..].try_into().unwrap())
        .unwrap();
    (client, responder.confirm(&confirmation).unwrap())
}

/// Records with these bytes in place of frames.
fn records(sealer: &mut Sealer, plain: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    for piece in plain.chunks(PLAINTEXT_BYTES_MAX) {
        sealer.seal_record(piece, &mut records).unwrap();
    }
    records
}

/// Feeds bytes to an opener, `step` at a time; returns the messages and the first error.
fn feed<M: Incoming>(
    opener: &mut Opener,
    mut bytes: &[u8],
    step: usize,
) -> (Vec<M>, Result<(), TransportError>) {
    let mut messages = Vec::new();
    let mut feed = || {
        loop {
            while let Some(message) = opener.next()? {
                messages.push(message);
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let room = opener.room();
            let count = room.len().min(step).min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            opener.filled(count)?;
        }
    };
    let ended = feed();
    (messages, ended)
}

/// A friend that may send any bytes where records belong.
struct RawFriend {
    socket: TcpStream,
    sealer: Sealer,
}

impl RawFriend {
    async fn connect(server: &EchoServer, secret: &Secret) -> RawFriend {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let (initiator, opening) = Initiator::open(Role::Client, secret, &random()).unwrap();
        socket.write_all(&opening).await.unwrap();
        let mut reply = [0; ANSWER_BYTES + NOISE_BYTES];
        socket.read_exact(&mut reply).await.unwrap();
        let (keys, confirmation) = initiator
            .finish(reply[ANSWER_BYTES..].try_into().unwrap())
            .unwrap();
        socket.write_all(&confirmation).await.unwrap();
        RawFriend {
            socket,
            sealer: keys.sealer,
        }
    }

    /// Reads until the server disconnects.
    async fn drain(&mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.socket.read_to_end(&mut rest).await {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
}

/// Checks that a peer that sends these bytes in place of frames is dropped with such a line.
#[track_caller]
fn check_dropped(plain: &[u8], line: &str) {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let mut friend = RawFriend::connect(&server, &secret).await;
        let records = records(&mut friend.sealer, plain);
        friend.socket.write_all(&records).await.unwrap();
        friend.socket.shutdown().await.unwrap();
        friend.drain().await;
        let lines = server.refusals(1).await;
        assert!(
            lines[0].starts_with("dropped 127.0.0.1:") && lines[0].contains(line),
            "{lines:?}"
        );
        server.check_serves(&secret).await;
    });
}

#[test]
fn frame_length_of_four_gigabytes_is_refused() {
    check_dropped(
        &[0xff; 4],
        "a message of 4294967295 bytes is longer than the 67108864 bytes",
    );
    check_dropped(&[0xff; 100], "a message of 4294967295 bytes");
}

#[test]
fn frame_length_above_limit_is_refused() {
    check_dropped(
        &(FRAME_BYTES_MAX + 1).to_le_bytes(),
        "a message of 67108865 bytes",
    );
}

#[test]
fn malformed_message_is_refused() {
    // A string that ends early, one that is not UTF-8, one with trailing bytes.
    check_dropped(&[2, 0, 0, 0, 9, b'x'], "cannot decode a frame of 2 bytes");
    check_dropped(&[2, 0, 0, 0, 1, 0xff], "cannot decode a frame of 2 bytes");
    check_dropped(
        &[3, 0, 0, 0, 1, b'x', b'y'],
        "a frame of 3 bytes holds a message of 2 bytes",
    );
}

#[test]
fn stream_cut_in_message_is_refused() {
    check_dropped(&[9, 0], "the stream ended inside a message");
    check_dropped(&[9, 0, 0, 0, 8, b'x'], "the stream ended inside a message");
}

#[test]
fn stream_cut_in_record_is_refused() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let whole = [2, 0, 0, 0, 1, b'x'];
        for (count, length) in [1, 2, 17, 23].into_iter().enumerate() {
            let mut friend = RawFriend::connect(&server, &secret).await;
            let records = records(&mut friend.sealer, &whole);
            friend.socket.write_all(&records[..length]).await.unwrap();
            friend.socket.shutdown().await.unwrap();
            friend.drain().await;
            assert!(server.refusals(count + 1).await[count].contains("ended inside a message"));
        }
        server.check_serves(&secret).await;
    });
}

#[test]
fn flipped_bit_in_record_is_detected() {
    let message = "a message of some length";
    for bit in 0..8 * (2 + 4 + 1 + message.len() + 16) {
        let (mut client, mut server) = keys();
        client.sealer.stage([message]).unwrap();
        let mut record = Vec::new();
        client.sealer.seal(&mut record).unwrap();
        record[bit / 8] ^= 1 << (bit % 8);
        // Enough for any length that the record may have now.
        record.resize(70_000, 0);
        let (messages, ended) = feed::<String>(&mut server.opener, &record, usize::MAX);
        assert_eq!(messages, [""; 0], "bit {bit}");
        let expected = matches!(
            ended,
            Err(TransportError::Forged | TransportError::ShortRecord { .. })
        );
        assert!(expected, "bit {bit}: {ended:?}");
    }
}

#[test]
fn repeated_omitted_and_reflected_records_are_detected() {
    let (mut client, mut server) = keys();
    let record = records(&mut client.sealer, &[1, 0, 0, 0, 7]);
    let next = records(&mut client.sealer, &[1, 0, 0, 0, 8]);
    assert_eq!(feed::<u8>(&mut server.opener, &record, 5).0, [7]);
    assert!(matches!(
        feed::<u8>(&mut server.opener, &record, 5).1,
        Err(TransportError::Forged)
    ));
    let (mut client, mut server) = keys();
    let _left_out = records(&mut client.sealer, &[1, 0, 0, 0, 7]);
    let late = records(&mut client.sealer, &[1, 0, 0, 0, 8]);
    assert!(matches!(
        feed::<u8>(&mut server.opener, &late, 5).1,
        Err(TransportError::Forged)
    ));
    assert!(matches!(
        feed::<u8>(&mut client.opener, &next, 5).1,
        Err(TransportError::Forged)
    ));
}

#[test]
fn claimed_length_allocates_no_memory() {
    let (mut client, mut server) = keys();
    // The longest frame, of which only the beginning arrives.
    let mut plain = FRAME_BYTES_MAX.to_le_bytes().to_vec();
    plain.extend_from_slice(&[1; 10]);
    let record = records(&mut client.sealer, &plain);
    feed::<Vec<u8>>(&mut server.opener, &record, usize::MAX)
        .1
        .unwrap();
    assert!(
        server.opener.capacity() <= 8 << 10,
        "{} bytes",
        server.opener.capacity()
    );
    // The longest record, of which only the length arrives.
    feed::<Vec<u8>>(&mut server.opener, &[0xff, 0xff, 1], usize::MAX)
        .1
        .unwrap();
    assert!(server.opener.room().len() <= 4 << 10);
    assert!(
        server.opener.capacity() <= 8 << 10,
        "{} bytes",
        server.opener.capacity()
    );
}

#[test]
fn memory_follows_received_data_and_is_released() {
    let (mut client, mut server) = keys();
    let mut plain = FRAME_BYTES_MAX.to_le_bytes().to_vec();
    plain.resize(4 << 20, 1);
    let mut arrived = 0;
    for piece in plain.chunks(100_000) {
        let records = records(&mut client.sealer, piece);
        feed::<Vec<u8>>(&mut server.opener, &records, 1000)
            .1
            .unwrap();
        arrived += piece.len();
        let taken = server.opener.capacity();
        assert!(
            taken <= 2 * arrived + (128 << 10),
            "{taken} bytes for {arrived}"
        );
    }
    // A complete message leaves little memory allocated.
    let (mut client, mut server) = keys();
    client.sealer.stage([vec![1_u8; 4 << 20]]).unwrap();
    let mut records = Vec::new();
    let mut messages = Vec::new();
    loop {
        client.sealer.seal(&mut records).unwrap();
        if records.is_empty() {
            break;
        }
        assert!(records.capacity() <= 2 << 20, "{}", records.capacity());
        messages.extend(feed::<Vec<u8>>(&mut server.opener, &records, usize::MAX).0);
    }
    assert_eq!(messages[0].len(), 4 << 20);
    let taken = server.opener.capacity() + records.capacity();
    assert!(taken <= 256 << 10, "{taken} bytes are kept");
}

#[test]
fn too_long_message_is_not_sent() {
    run(async {
        let secret = Secret::generate().unwrap();
        let server = EchoServer::start(&secret).await;
        let address = server.address.to_string();
        let connection = connect(&address, Role::Client, &secret, PATIENCE)
            .await
            .unwrap();
        let long = "x".repeat(FRAME_BYTES_MAX as usize);
        let (mut sender, mut receiver) = connection.split();
        let error = sender
            .send_all(["first", &long])
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("longer than the 67108864 bytes"), "{error}");
        sender.send(&"second").await.unwrap();
        assert_eq!(
            receiver.receive::<String>().await.unwrap().as_deref(),
            Some("second")
        );
    });
}

#[test]
fn into_blocking_during_send_fails() {
    run(async {
        let secret = Secret::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let accepting = async {
            accept(
                listener.accept().await.unwrap().0.into(),
                &secret,
                &random(),
                PATIENCE,
            )
            .await
        };
        let (client, server) =
            tokio::join!(connect(&address, Role::Data, &secret, PATIENCE), accepting);
        let mut client = client.unwrap();
        let _unread = server.unwrap();
        let unfinished =
            tokio::time::timeout(Duration::ZERO, client.send(&vec![3_u8; 30 << 20])).await;
        assert!(
            unfinished.is_err(),
            "30 MiB were sent although the peer does not read"
        );
        let error = client.into_blocking(PATIENCE).map(drop).unwrap_err();
        assert!(matches!(error, TransportError::InsideMessage), "{error}");
    });
}

#[test]
fn dropped_send_is_finished_by_next_send() {
    run(async {
        let secret = Secret::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let accepting = async {
            accept(
                listener.accept().await.unwrap().0.into(),
                &secret,
                &random(),
                PATIENCE,
            )
            .await
        };
        let (client, server) =
            tokio::join!(connect(&address, Role::Data, &secret, PATIENCE), accepting);
        let mut client = client.unwrap();
        let (_, mut server) = server.unwrap();
        let long = vec![3_u8; 30 << 20];
        let unfinished = tokio::time::timeout(Duration::ZERO, client.send(&long)).await;
        assert!(
            unfinished.is_err(),
            "30 MiB were sent although the peer does not read"
        );
        let receiving = async {
            assert!(server.receive::<Vec<u8>>().await.unwrap().unwrap() == long);
            assert_eq!(
                server.receive::<String>().await.unwrap().as_deref(),
                Some("next")
            );
        };
        let (sent, ()) = tokio::join!(client.send(&"next"), receiving);
        sent.unwrap();
    });
}

proptest! {
    #[test]
    fn random_records_are_refused(bytes in proptest::collection::vec(any::<u8>(), 70_000), step in 1_usize..5000) {
        let (_client, mut server) = keys();
        let (messages, ended) = feed::<Vec<u8>>(&mut server.opener, &bytes, step);
        prop_assert!(messages.is_empty());
        prop_assert!(ended.is_err());
    }

    #[test]
    fn random_frames_take_little_memory(bytes in proptest::collection::vec(any::<u8>(), 0..300), step in 1_usize..50) {
        let (mut client, mut server) = keys();
        let records = records(&mut client.sealer, &bytes);
        let (_messages, _ended) = feed::<ToCoordinator>(&mut server.opener, &records, step);
        prop_assert!(server.opener.capacity() <= 16 << 10);
    }
}
