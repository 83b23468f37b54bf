//! Valid and invalid requests of clients.

use std::io::{Read, Write};

use napreduce_protocol::{CREDIT_BYTES_MAX, FETCH_ITEMS_MAX, FetchItem, Outgoing};
use serde::Serialize;

use super::*;

fn item(attempt: AttemptId, from_block: u64) -> FetchItem {
    FetchItem {
        attempt,
        from_block,
    }
}

fn fetch(partition: u32, items: Vec<FetchItem>) -> ToDataServer {
    ToDataServer::Fetch { partition, items }
}

fn next(line: &mut DataConnection) -> FromDataServer {
    line.receive().unwrap().expect("the server is still there")
}

/// Checks that the item is unavailable for this reason, and that the connection continues.
#[track_caller]
fn check_unavailable(partition: u32, item: FetchItem, reason: &str) {
    let served = Served::start().with_maps(1, 100);
    for encrypt in [false, true] {
        let mut line = served.client(encrypt);
        line.send(&fetch(partition, vec![item])).unwrap();
        match next(&mut line) {
            FromDataServer::Unavailable {
                attempt,
                partition: about,
                gone: true,
                reason: given,
            } => {
                assert_eq!((attempt, about), (item.attempt, partition));
                assert!(given.contains(reason), "{reason:?} is missing in {given:?}");
            }
            other => panic!("{other:?}"),
        }
        line.send(&fetch(0, vec![self::item(map(0), 0)])).unwrap();
        assert!(
            matches!(next(&mut line), FromDataServer::Segment { attempt, .. } if attempt == map(0))
        );
    }
}

/// Encoded as `Fetch{partition: 0, items: [path]}` and `ReadLog{attempt: path, ..}` would be, with a path.
#[derive(Serialize)]
struct Forged(u8, u8, Vec<String>);

impl Outgoing for Forged {}

#[test]
fn partition_out_of_range_is_unavailable() {
    check_unavailable(
        PARTITIONS,
        item(map(0), 0),
        "has no partition 3; it has 3, from 0",
    );
    check_unavailable(
        u32::MAX,
        item(map(0), 0),
        "has no partition 4294967295; it has 3, from 0",
    );
}

#[test]
fn block_out_of_range_is_unavailable() {
    check_unavailable(
        0,
        item(map(0), 2),
        "has no block 2 of partition 0; it has 1, from 0",
    );
    check_unavailable(
        0,
        item(map(0), u64::MAX),
        "of partition 0; it has 1, from 0",
    );
}

#[test]
fn unknown_attempt_is_unavailable() {
    check_unavailable(0, item(map(9), 0), "cannot open segment");
    check_unavailable(
        0,
        item(attempt(TaskKind::Reduce, 0, 1), 0),
        "unknown map output job_0001_r_0000.1",
    );
    let foreign = AttemptId {
        task: TaskId {
            job: JobId(u32::MAX),
            ..map(0).task
        },
        number: u32::MAX,
    };
    check_unavailable(0, item(foreign, 0), "unknown map output");
}

/// Checks that the server refuses with this reason and disconnects.
#[track_caller]
fn check_refused(requests: &[ToDataServer], reason: &str) {
    let served = Served::start().with_maps(1, 100);
    for encrypt in [false, true] {
        let mut line = served.client(encrypt);
        for message in requests {
            line.send(message).unwrap();
        }
        match next(&mut line) {
            FromDataServer::Refused { reason: given } => assert!(given.contains(reason), "{given}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(line.receive::<FromDataServer>().unwrap(), None);
    }
    // Other clients are not affected.
    Reduce::new(1).gather(served.inputs(1));
}

/// Connects as a task with the token of one job.
fn task(served: &Served, job: u32) -> DataConnection {
    let role = Role::Task(JobId(job));
    let token = job_token(&secret(), JobId(job));
    let mut connection =
        blocking::connect(&served.address, role, &token, PATIENCE, PATIENCE).unwrap();
    connection
        .send(&ToDataServer::Open { encrypt: false })
        .unwrap();
    connection.receive::<FromDataServer>().unwrap();
    DataConnection::new(connection, false).unwrap()
}

#[test]
fn task_receives_map_output_of_own_job_only() {
    let served = Served::start().with_maps(1, 100);
    let mut own = task(&served, 1);
    own.send(&fetch(0, vec![item(map(0), 0)])).unwrap();
    assert!(matches!(next(&mut own), FromDataServer::Segment { attempt, .. } if attempt == map(0)));
    let log = ToDataServer::ReadLog {
        attempt: map(0),
        stream: LogStream::Stderr,
        offset: 0,
        length: 9,
    };
    for (job, asked) in [(2, fetch(0, vec![item(map(0), 0)])), (1, log)] {
        let mut line = task(&served, job);
        line.send(&asked).unwrap();
        match next(&mut line) {
            FromDataServer::Refused { reason } => {
                assert_eq!(
                    reason,
                    format!(
                        "a task of {} may only fetch map output of its own job",
                        JobId(job)
                    )
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn job_token_is_refused_for_other_roles_and_jobs() {
    let served = Served::start().with_maps(1, 100);
    let token = job_token(&secret(), JobId(2));
    for role in [
        Role::Worker,
        Role::Client,
        Role::Data,
        Role::Task(JobId(1)),
        Role::Task(JobId(0)),
    ] {
        let refused =
            blocking::connect(&served.address, role, &token, PATIENCE, PATIENCE).unwrap_err();
        assert!(
            matches!(refused, TransportError::SecretRefused),
            "{role:?}: {refused}"
        );
    }
}

#[test]
fn credit_beyond_limit_is_refused() {
    check_refused(
        &[ToDataServer::Grant {
            bytes: CREDIT_BYTES_MAX + 1,
        }],
        "too much credit",
    );
    check_refused(
        &[
            ToDataServer::Grant { bytes: 1 },
            ToDataServer::Grant { bytes: u64::MAX },
        ],
        "in addition to 1",
    );
}

#[test]
fn request_for_too_many_segments_is_refused() {
    check_refused(
        &[fetch(0, vec![item(map(0), 0); FETCH_ITEMS_MAX + 1])],
        "too many segments",
    );
}

#[test]
fn too_many_pending_requests_are_refused() {
    let served = Served::start().with_maps(1, 100);
    let mut line = served.client(false);
    // Without credit, the first one waits, and the others queue.
    for _ in 0..5 {
        line.send(&fetch(0, vec![item(map(0), 0); FETCH_ITEMS_MAX]))
            .unwrap();
    }
    assert!(matches!(next(&mut line), FromDataServer::Segment { .. }));
    match next(&mut line) {
        FromDataServer::Refused { reason } => assert!(reason.contains("5119 pending"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_message_must_be_open() {
    check_refused(&[ToDataServer::Open { encrypt: false }], "already open");
    let served = Served::start();
    let mut connection = served.stranger();
    connection.send(&ToDataServer::Grant { bytes: 1 }).unwrap();
    let answer = connection.receive::<FromDataServer>().unwrap();
    assert!(
        matches!(answer, Some(FromDataServer::Refused { .. })),
        "{answer:?}"
    );
}

#[test]
fn undecodable_bytes_end_their_connection_only() {
    let served = Served::start().with_maps(1, 100);
    let frame_of_4_gib = [0xff; 4];
    let garbage = [9, 0, 0, 0, 0xee, 1, 2, 3, 4, 5, 6, 7, 8];
    for bytes in [&frame_of_4_gib[..], &garbage] {
        let mut connection = served.stranger();
        connection
            .send(&ToDataServer::Open { encrypt: false })
            .unwrap();
        connection.receive::<FromDataServer>().unwrap();
        let mut socket = connection.into_plain().unwrap();
        socket.write_all(bytes).unwrap();
        // The server disconnects in either case.
        assert!(matches!(socket.read(&mut [0; 9]), Ok(0) | Err(_)));
    }
    Reduce::new(1).gather(served.inputs(1));
    let lines = served.lines.lock().unwrap().join("\n");
    assert!(
        lines.contains("longer than") && lines.contains("cannot decode"),
        "{lines}"
    );
}

/// Requests contain numbers; a path in their place is not a valid message.
#[test]
fn path_instead_of_attempt_is_refused() {
    let served = Served::start().with_maps(1, 100);
    for encrypt in [false, true] {
        for path in [
            "../../etc/passwd",
            "/etc/passwd",
            "job_0001_m_0000.1/../../../../etc/passwd",
        ] {
            let mut line = served.client(encrypt);
            for variant in 0_u8..4 {
                // Fails if the connection has ended by now.
                let _ = line.send(&Forged(variant, 0, vec![path.to_owned()]));
            }
            match line.receive::<FromDataServer>() {
                Ok(None | Some(FromDataServer::Refused { .. })) | Err(_) => {}
                Ok(Some(other)) => panic!("{path} was answered by {other:?}"),
            }
        }
    }
    Reduce::new(1).gather(served.inputs(1));
}

#[test]
fn connection_of_another_role_is_refused() {
    let served = Served::start();
    let mut connection =
        blocking::connect(&served.address, Role::Worker, &secret(), PATIENCE, PATIENCE).unwrap();
    assert!(!matches!(
        connection.receive::<FromDataServer>(),
        Ok(Some(_))
    ));
    assert!(served.lines.lock().unwrap()[0].contains("data connections only"));
}

#[test]
fn read_log_returns_pieces() {
    let served = Served::start();
    let printer = attempt(TaskKind::Reduce, 4, 2);
    let text = "one line\nanother line\n";
    std::fs::write(Shelf::log(&served.shelf, printer, LogStream::Stderr), text).unwrap();
    for encrypt in [false, true] {
        let mut line = served.client(encrypt);
        let mut read = |attempt, stream, offset, length| {
            line.send(&ToDataServer::ReadLog {
                attempt,
                stream,
                offset,
                length,
            })
            .unwrap();
            next(&mut line)
        };
        for (offset, length, piece) in [
            (0, 8, "one line"),
            (9, u32::MAX, "another line\n"),
            (22, 10, ""),
            (u64::MAX, 10, ""),
        ] {
            match read(printer, LogStream::Stderr, offset, length) {
                FromDataServer::Log {
                    length: whole,
                    bytes,
                    ..
                } => {
                    assert_eq!(
                        (whole, bytes.0.as_slice()),
                        (text.len() as u64, piece.as_bytes())
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        let missing = read(printer, LogStream::Stdout, 0, 10);
        assert!(matches!(
            missing,
            FromDataServer::LogUnavailable {
                stream: LogStream::Stdout,
                ..
            }
        ));
        let foreign = AttemptId {
            task: TaskId {
                job: JobId(2),
                ..map(0).task
            },
            number: 1,
        };
        let unknown = read(foreign, LogStream::Stdout, 0, 10);
        assert!(
            matches!(unknown, FromDataServer::LogUnavailable { attempt, .. } if attempt == foreign)
        );
    }
}

#[test]
fn read_log_returns_piece_or_error_with_address() {
    let served = Served::start();
    let printer = attempt(TaskKind::Map, 4, 2);
    std::fs::write(
        Shelf::log(&served.shelf, printer, LogStream::Stdout),
        "hello",
    )
    .unwrap();
    let read = |stream, address: &str| {
        on_runtime(read_log(
            address,
            &secret(),
            (printer, stream),
            1,
            3,
            PATIENCE,
        ))
        .map_err(|error| error.to_string())
    };
    let piece = LogPiece {
        bytes: b"ell".to_vec(),
        length: 5,
    };
    assert_eq!(read(LogStream::Stdout, &served.address), Ok(piece));
    let missing = read(LogStream::Stderr, &served.address).unwrap_err();
    assert!(
        missing.contains("cannot read") && missing.contains(&served.address),
        "{missing}"
    );
    assert!(
        read(LogStream::Stdout, "127.0.0.1:1")
            .unwrap_err()
            .contains("cannot connect")
    );
}
