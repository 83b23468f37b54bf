//! Measures the cost of connections. Run by hand on an idle machine; see docs/security.md.

use std::thread;
use std::time::Instant;

use napreduce_protocol::Payload;

use super::*;

/// The server's runtime has a thread of its own, as in a cluster.
fn with_server<T>(test: impl AsyncFnOnce(String, Secret) -> T) -> T {
    let secret = Secret::generate().unwrap();
    let (tell, address) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let key = secret.clone();
    let server = thread::spawn(move || {
        run(async {
            let mut listener =
                Listener::bind(&World::real(), "127.0.0.1:0", key, |line| panic!("{line}"))
                    .await
                    .unwrap();
            tell.send(listener.address().to_string()).unwrap();
            let serve = async {
                loop {
                    let mut connection = listener.accept().await.connection;
                    tokio::spawn(async move {
                        let mut count = 0_u64;
                        while let Some(bytes) = connection.receive::<Payload>().await.unwrap() {
                            count += 1;
                            if bytes.0.is_empty() {
                                connection.send(&count).await.unwrap();
                            }
                        }
                    });
                }
            };
            tokio::select! {
                () = serve => {}
                _ = ended => {}
            }
        })
    });
    let address = address.recv().unwrap();
    let result = run(test(address, secret));
    end.send(()).unwrap();
    server.join().unwrap();
    result
}

#[test]
#[ignore = "a measurement"]
fn measure_megabytes_per_second() {
    for size in [100, 1 << 20] {
        with_server(async |address, secret| {
            let connection = connect(&address, Role::Data, &secret, PATIENCE)
                .await
                .unwrap();
            let (mut sender, mut receiver) = connection.split();
            let piece = Payload(vec![7; size]);
            let batch = 64.min((4 << 20) / size);
            let total = 2_usize << 30 >> if size < 1000 { 5 } else { 0 };
            let began = Instant::now();
            for _ in 0..total / size / batch {
                sender
                    .send_all(std::iter::repeat_n(&piece, batch))
                    .await
                    .unwrap();
            }
            sender.send(&Payload(Vec::new())).await.unwrap();
            let count = receiver.receive::<u64>().await.unwrap().unwrap() - 1;
            let seconds = began.elapsed().as_secs_f64();
            let megabytes = (count as usize * size) as f64 / 1e6;
            eprintln!(
                "messages of {size} bytes: {:.0} MB/s, {:.0} a second",
                megabytes / seconds,
                count as f64 / seconds
            );
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn measure_handshakes_per_second() {
    with_server(async |address, secret| {
        let began = Instant::now();
        for _ in 0..3000 {
            connect(&address, Role::Client, &secret, PATIENCE)
                .await
                .unwrap();
        }
        eprintln!(
            "{:.0} handshakes a second, one after the other",
            3000.0 / began.elapsed().as_secs_f64()
        );
    });
}

#[test]
#[ignore = "a measurement"]
fn measure_round_trips_per_second() {
    with_server(async |address, secret| {
        let mut connection = connect(&address, Role::Client, &secret, PATIENCE)
            .await
            .unwrap();
        let began = Instant::now();
        for _ in 0..20_000 {
            connection.send(&Payload(Vec::new())).await.unwrap();
            connection.receive::<u64>().await.unwrap().unwrap();
        }
        eprintln!(
            "{:.0} round trips a second",
            20_000.0 / began.elapsed().as_secs_f64()
        );
    });
}
