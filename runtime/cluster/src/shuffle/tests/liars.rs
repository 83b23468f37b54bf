//! Servers that have the secret and send false data: a reduce rejects the data and reports the outputs as
//! lost.

use std::sync::atomic::{AtomicBool, Ordering};

use napreduce_data::{PartitionExtent, SegmentIndex};
use napreduce_protocol::Payload;

use super::*;
use crate::shuffle::data_connection::DataConnection;

/// A server that answers every request for a segment with these messages.
struct Liar {
    address: String,
    ended: Arc<AtomicBool>,
}

impl Liar {
    fn telling(opened: FromDataServer, lies: Vec<FromDataServer>) -> Liar {
        let (started, address) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        std::thread::spawn(move || {
            on_runtime(async move {
                let mut listener = Listener::bind(&World::real(), "127.0.0.1:0", secret(), |_| {})
                    .await
                    .unwrap();
                started.send(listener.address().to_string()).unwrap();
                while !end.load(Ordering::Relaxed) {
                    let connection = listener
                        .accept()
                        .await
                        .connection
                        .into_blocking(PATIENCE)
                        .unwrap();
                    let opened = opened.clone();
                    let lies = lies.clone();
                    std::thread::spawn(move || tell(connection, &opened, &lies));
                }
            });
        });
        Liar {
            address: address.recv().unwrap(),
            ended,
        }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the server thread, so that it ends.
        let _ = std::net::TcpStream::connect(&self.address);
    }
}

/// Serves one connection; ends early if the reduce disconnects.
fn tell(mut connection: BlockingConnection, opened: &FromDataServer, lies: &[FromDataServer]) {
    let _: Result<Option<ToDataServer>, _> = connection.receive();
    let FromDataServer::Opened { encrypted } = opened else {
        let _ = connection.send(opened);
        return;
    };
    if connection.send(opened).is_err() {
        return;
    }
    let Ok(mut line) = DataConnection::new(connection, *encrypted) else {
        return;
    };
    while let Ok(Some(message)) = line.receive() {
        if matches!(message, ToDataServer::Fetch { .. }) {
            for lie in lies {
                if line.send(lie).is_err() {
                    return;
                }
            }
        }
    }
}

const OPENED: FromDataServer = FromDataServer::Opened { encrypted: false };

/// The true extent of a segment, to be falsified.
fn extent(shelf: &Shelf) -> Vec<u8> {
    shelf.seal(map(0), 2_000, BlockCompression::None);
    let path = shelf.path(map(0));
    let index = SegmentIndex::read(&std::fs::File::open(&path).unwrap(), &path).unwrap();
    index.extent(0, 0).unwrap().encode()
}

fn segment(extent: Vec<u8>) -> FromDataServer {
    FromDataServer::Segment {
        attempt: map(0),
        partition: 0,
        from_block: 0,
        extent: Payload(extent),
    }
}

#[track_caller]
fn check_not_believed(opened: FromDataServer, lies: Vec<FromDataServer>, reason: &str) {
    let liar = Liar::telling(opened, lies);
    let shelf = Shelf::new();
    shelf.seal(map(0), 100, BlockCompression::None);
    let mut reduce = Reduce::new(1);
    let truth = local(map(0), shelf.path(map(0)));
    let gathered = reduce
        .gather_with(vec![remote(map(0), &liar.address)], |_| vec![truth.clone()])
        .unwrap();
    assert_eq!(gathered, [(map(0), shelf.path(map(0)))]);
    let [(lost, given)] = reduce.lost.as_slice() else {
        panic!("{:?}", reduce.lost)
    };
    assert_eq!(lost, &[map(0)]);
    assert!(given.contains(reason), "{reason:?} is missing in {given:?}");
}

#[test]
fn length_beyond_extent_or_credit_is_rejected() {
    let shelf = Shelf::new();
    let truth = extent(&shelf);
    for length in [0, 1 << 20, u32::MAX] {
        let lies = vec![segment(truth.clone()), FromDataServer::Blocks { length }];
        check_not_believed(OPENED, lies, &format!("announced {length} bytes"));
    }
    let lies = vec![
        segment(truth),
        FromDataServer::Chunk(Payload(vec![0; 1 << 20])),
    ];
    check_not_believed(OPENED, lies, "announced 1048576 bytes");
}

#[test]
fn blocks_unlike_index_are_rejected() {
    let shelf = Shelf::new();
    let truth = extent(&shelf);
    let range = PartitionExtent::decode(&truth).unwrap().range();
    let noise = FromDataServer::Chunk(Payload(vec![7; (range.end - range.start) as usize]));
    check_not_believed(
        OPENED,
        vec![segment(truth), noise],
        "checksum mismatch in block 0",
    );
}

#[test]
fn invalid_index_is_rejected() {
    let shelf = Shelf::new();
    let truth = extent(&shelf);
    for broken in [
        vec![],
        vec![0; 3],
        vec![0xff; 5_000],
        truth[..truth.len() - 1].to_vec(),
    ] {
        check_not_believed(OPENED, vec![segment(broken)], "the extent");
    }
}

#[test]
fn answer_about_another_segment_is_rejected() {
    let shelf = Shelf::new();
    let truth = Payload(extent(&shelf));
    let about = |attempt, partition, from_block| FromDataServer::Segment {
        attempt,
        partition,
        from_block,
        extent: truth.clone(),
    };
    for lie in [
        about(map(1), 0, 0),
        about(map(0), 1, 0),
        about(map(0), 0, 1),
        FromDataServer::Unavailable {
            attempt: map(5),
            partition: 0,
            gone: true,
            reason: "no".into(),
        },
        FromDataServer::Blocks { length: 5 },
        FromDataServer::Opened { encrypted: true },
    ] {
        check_not_believed(
            OPENED,
            vec![lie],
            "expected an answer about job_0001_m_0000.1",
        );
    }
}

#[test]
fn mislabeled_segment_is_rejected() {
    let shelf = Shelf::new();
    let of_another = attempt(TaskKind::Map, 0, 3);
    shelf.seal(of_another, 100, BlockCompression::None);
    let path = shelf.path(of_another);
    let index = SegmentIndex::read(&std::fs::File::open(&path).unwrap(), &path).unwrap();
    let lie = segment(index.extent(0, 0).unwrap().encode());
    check_not_believed(OPENED, vec![lie], "of job_0001_m_0000.3");
    let lie = segment(index.extent(1, 0).unwrap().encode());
    check_not_believed(OPENED, vec![lie], "received partition 1");
}

#[test]
fn unexpected_first_message_is_rejected() {
    check_not_believed(
        FromDataServer::Refused {
            reason: "not today".into(),
        },
        vec![],
        "refused: not today",
    );
    check_not_believed(
        FromDataServer::Blocks { length: 1 },
        vec![],
        "did not answer Open",
    );
    check_not_believed(
        OPENED,
        vec![FromDataServer::Refused {
            reason: "enough".into(),
        }],
        "refused: enough",
    );
}

#[test]
fn server_without_requested_encryption_is_rejected() {
    let liar = Liar::telling(OPENED, vec![]);
    let shelf = Shelf::new();
    shelf.seal(map(0), 100, BlockCompression::None);
    let mut reduce = Reduce::new(1).encrypted(true);
    let truth = local(map(0), shelf.path(map(0)));
    reduce
        .gather_with(vec![remote(map(0), &liar.address)], |_| vec![truth.clone()])
        .unwrap();
    assert!(
        reduce.lost[0].1.contains("does not encrypt"),
        "{:?}",
        reduce.lost
    );
}

#[test]
fn silent_server_is_given_up() {
    let liar = Liar::telling(OPENED, vec![]);
    let shelf = Shelf::new();
    shelf.seal(map(0), 100, BlockCompression::None);
    let mut reduce = Reduce::new(1).silence_max(Duration::from_millis(400));
    let truth = local(map(0), shelf.path(map(0)));
    let before = reduce.context.progress().signs_of_life();
    reduce
        .gather_with(vec![remote(map(0), &liar.address)], |_| vec![truth.clone()])
        .unwrap();
    assert!(
        reduce.lost[0].1.contains("the server sent nothing"),
        "{:?}",
        reduce.lost
    );
    assert!(
        reduce.context.progress().signs_of_life() != before,
        "a task that waits shows that it is well"
    );
}
