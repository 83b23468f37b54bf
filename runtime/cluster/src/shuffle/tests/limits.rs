//! Limits of a data server and its readers: credit, connections, silence.

use napreduce_protocol::FetchItem;

use super::*;

fn ask(line: &mut DataConnection, bytes: u64) {
    let items = vec![FetchItem {
        attempt: map(0),
        from_block: 0,
    }];
    line.send(&ToDataServer::Fetch {
        partition: 0,
        items,
    })
    .unwrap();
    line.send(&ToDataServer::Grant { bytes }).unwrap();
    assert!(matches!(
        line.receive().unwrap(),
        Some(FromDataServer::Segment { .. })
    ));
}

/// Receives the next piece; returns its length.
fn piece(line: &mut DataConnection) -> Option<u64> {
    match line.receive().unwrap() {
        Some(FromDataServer::Chunk(bytes)) => Some(bytes.0.len() as u64),
        Some(FromDataServer::Blocks { length }) => {
            let DataConnection::Plain(plain) = line else {
                panic!("raw bytes on an encrypted connection")
            };
            let mut left = length as usize;
            while left > 0 {
                left -= plain.receive_raw(left, |_| {}).unwrap();
            }
            Some(u64::from(length))
        }
        _ => None,
    }
}

#[test]
fn server_sends_no_more_than_credit() {
    let served = Served::start().with_maps(1, 60_000);
    for encrypt in [false, true] {
        let mut line = served.client(encrypt);
        ask(&mut line, 1_000);
        for more in [1, 70_000, 300_000] {
            // The next message after the credit is used up answers this request.
            let log = ToDataServer::ReadLog {
                attempt: map(9),
                stream: LogStream::Stdout,
                offset: 0,
                length: 1,
            };
            let granted = if more == 1 { 1_000 } else { 0 };
            let mut sent = 0;
            while sent < granted {
                sent += piece(&mut line).expect("a piece");
            }
            assert_eq!(sent, granted);
            line.send(&log).unwrap();
            assert_eq!(piece(&mut line), None, "more than granted");
            line.send(&ToDataServer::Grant { bytes: more }).unwrap();
            let mut sent = 0;
            while sent < more {
                sent += piece(&mut line).expect("a piece");
            }
            assert_eq!(sent, more);
        }
    }
}

#[test]
fn slow_reader_does_not_delay_others() {
    let served = Served::start().with_maps(1, 200_000);
    let mut slow: Vec<DataConnection> = (0..4).map(|index| served.client(index % 2 == 0)).collect();
    for line in &mut slow {
        ask(line, 200 << 20);
    }
    let mut reduce = Reduce::new(1);
    let gathered = reduce.gather(served.inputs(1));
    check_equal(&gathered, &served.shelf, 0);
    for line in &mut slow {
        assert!(piece(line).is_some(), "it is still served");
    }
}

#[test]
fn connections_per_address_are_limited() {
    let settings = DataServerSettings {
        connections_per_peer_max: 2,
        ..DataServerSettings::default()
    };
    let served = Served::start_with(settings).with_maps(1, 100);
    let mut first = served.client(false);
    let second = served.client(true);
    let mut third = served.stranger();
    third.send(&ToDataServer::Open { encrypt: false }).unwrap();
    match third.receive().unwrap() {
        Some(FromDataServer::Busy { millis: 1.. }) => {}
        other => panic!("{other:?}"),
    }
    let log = served.lines.lock().unwrap().join(" ");
    assert!(log.contains("2 data connections from 127.0.0.1"), "{log}");
    // A closed connection makes room for a fetch that retries.
    drop(second);
    Reduce::new(1).gather(served.inputs(1));
    ask(&mut first, 10);
}

#[test]
fn connections_in_total_are_limited() {
    let settings = DataServerSettings {
        connections_max: 1,
        ..DataServerSettings::default()
    };
    let served = Served::start_with(settings).with_maps(1, 100);
    let _first = served.client(false);
    let mut second = served.stranger();
    second.send(&ToDataServer::Open { encrypt: false }).unwrap();
    let answer = second.receive().unwrap();
    assert!(
        matches!(answer, Some(FromDataServer::Busy { millis: 1.. })),
        "{answer:?}"
    );
}

#[test]
fn fetch_from_busy_server_retries_without_loss() {
    let settings = DataServerSettings {
        connections_max: 1,
        ..DataServerSettings::default()
    };
    let served = Served::start_with(settings).with_maps(3, 500);
    let guest = served.client(false);
    let mut reduce = Reduce::new(3);
    let gathered = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Until the reduce was asked to retry.
            while !served
                .lines
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains("to retry"))
            {
                std::thread::yield_now();
            }
            drop(guest);
        });
        reduce.gather(served.inputs(3))
    });
    check_equal(&gathered, &served.shelf, 0);
    assert!(reduce.lost.is_empty(), "busy does not count as a failure");
}

#[test]
fn idle_peer_is_disconnected_without_log() {
    let settings = DataServerSettings {
        idle_max: Duration::from_millis(20),
        ..DataServerSettings::default()
    };
    let served = Served::start_with(settings).with_maps(1, 100);
    for encrypt in [false, true] {
        let mut line = served.client(encrypt);
        assert_eq!(
            line.receive::<FromDataServer>().unwrap(),
            None,
            "it was not disconnected"
        );
    }
    assert!(
        served.lines.lock().unwrap().is_empty(),
        "silence is not an error"
    );
}

#[test]
fn stopped_server_closes_its_connections() {
    let mut served = Served::start().with_maps(1, 100);
    let mut idle = served.client(true);
    let mut waiting = served.client(false);
    ask(&mut waiting, 1);
    assert_eq!(piece(&mut waiting), Some(1));
    served.die();
    assert_eq!(piece(&mut waiting), None);
    assert_eq!(idle.receive::<FromDataServer>().unwrap(), None);
}
