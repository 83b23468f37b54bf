//! A proxy that damages data.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A fault of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The connection ends after this many bytes from the server.
    Cut(usize),
    /// One bit of this byte from the server is changed.
    Flip(usize),
}

/// Between a reduce and a data server.
pub(super) struct Proxy {
    pub(super) address: String,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// Bytes sent to the client, by connection.
    passed: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Proxy {
    /// Applies one fault to each connection, in order; later connections are undisturbed.
    pub(super) fn before(server: &str, faults: &[Fault]) -> Proxy {
        Proxy::start(server, faults, None)
    }

    /// A link with this bandwidth from the server.
    pub(super) fn slow(server: &str, bytes_per_second: u32) -> Proxy {
        Proxy::start(server, &[], Some(bytes_per_second))
    }

    fn start(server: &str, faults: &[Fault], rate: Option<u32>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = server.to_owned();
        let faults = Arc::new(Mutex::new(VecDeque::from(faults.to_vec())));
        let passed = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&faults);
        let record = Arc::clone(&passed);
        // Ends with the process, since an accept cannot be cancelled; it holds only its port.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else {
                    return;
                };
                // Without it, small messages would wait for each other.
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let fault = shared.lock().unwrap().pop_front();
                let number = {
                    let mut record = record.lock().unwrap();
                    record.push(Vec::new());
                    record.len() - 1
                };
                let mut from_client = client.try_clone().unwrap();
                let mut to_server = server.try_clone().unwrap();
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from_client, &mut to_server);
                    let _ = to_server.shutdown(Shutdown::Write);
                });
                let record = Arc::clone(&record);
                std::thread::spawn(move || {
                    forward(server, client, fault, |bytes| {
                        record.lock().unwrap()[number].extend_from_slice(bytes);
                        // This is the slow link, not a wait for an event.
                        if let Some(rate) = rate {
                            std::thread::sleep(Duration::from_secs(bytes.len() as u64) / rate);
                        }
                    })
                });
            }
        });
        Proxy {
            address,
            faults,
            passed,
        }
    }

    /// Returns the bytes sent to the client so far, by connection.
    pub(super) fn passed(&self) -> Vec<Vec<u8>> {
        self.passed.lock().unwrap().clone()
    }

    /// Checks that all injected faults happened.
    pub(super) fn check_fired(&self) {
        assert!(
            self.faults.lock().unwrap().is_empty(),
            "a fault did not happen"
        );
    }
}

fn forward(
    mut server: TcpStream,
    mut client: TcpStream,
    fault: Option<Fault>,
    mut note: impl FnMut(&[u8]),
) {
    let mut bytes = vec![0; 16 << 10];
    let mut passed = 0;
    while let Ok(mut count @ 1..) = server.read(&mut bytes) {
        let mut last = false;
        match fault {
            Some(Fault::Cut(at)) if at <= passed + count => (count, last) = (at - passed, true),
            Some(Fault::Flip(at)) if (passed..passed + count).contains(&at) => {
                bytes[at - passed] ^= 4
            }
            _ => {}
        }
        note(&bytes[..count]);
        if client.write_all(&bytes[..count]).is_err() || last {
            break;
        }
        passed += count;
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}
