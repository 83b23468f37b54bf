//! A proxy between programs and the NameNode that holds or drops requests of one kind.
//!
//! A process has one connection, so a fault affects all requests that the process has in flight.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use napreduce_tests::wait_until;

/// The action of the proxy on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trick {
    Pass,
    /// Closes the connection instead of forwarding the request.
    Refuse,
    /// Holds this request and all later ones until the test releases them.
    Hold,
    /// Forwards the request, and closes the connection before the answer.
    Lose,
}

/// Selects requests by the name of the method and a part of the path.
#[derive(Debug, Clone, Copy)]
pub struct Kind(pub &'static str, pub &'static str);

impl Kind {
    pub const ANY: Kind = Kind("", "");
    /// Requests for block locations of a file.
    pub const READ: Kind = Kind("getBlockLocations", "");
    /// Requests that begin a block of an upload.
    pub const SEND: Kind = Kind("addBlock", "/uploads/part-");
    /// Requests that turn an upload into a part.
    pub const COMPLETE: Kind = Kind("rename2", "/uploads/part-");
    pub const CLAIM: Kind = Kind("rename2", "/claim.json");
    pub const INTENT: Kind = Kind("rename2", "/intent.json");
    pub const SUCCESS: Kind = Kind("rename2", "/_SUCCESS");

    fn is(self, request: &[u8]) -> bool {
        let has = |text: &str| {
            text.is_empty()
                || request
                    .windows(text.len())
                    .any(|window| window == text.as_bytes())
        };
        has(self.0) && has(self.1)
    }
}

/// The result of a held request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Passed,
    Dropped,
}

/// The proxy; it ends with the process.
pub struct Proxy {
    pub address: String,
    state: Arc<State>,
}

struct State {
    kind: Kind,
    tricks: Mutex<VecDeque<Trick>>,
    /// Whether held requests are forwarded or dropped, and how many.
    held: Mutex<(Option<Way>, usize)>,
    released: Condvar,
}

impl Proxy {
    /// Applies each trick to one request of this kind; later requests are forwarded.
    pub fn on(kind: Kind, server: &str, tricks: &[Trick]) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(State {
            kind,
            tricks: Mutex::new(tricks.iter().copied().collect()),
            held: Mutex::new((None, 0)),
            released: Condvar::new(),
        });
        let shared = Arc::clone(&state);
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), state, server) = (client, Arc::clone(&shared), server.clone())
                else {
                    return;
                };
                // A client that has ended does not read its answer.
                std::thread::spawn(move || drop(state.serve(client, &server)));
            }
        });
        Proxy { address, state }
    }

    /// Waits until a request is held.
    pub fn wait_until_held(&self) {
        wait_until("a request that waits", || {
            self.state.held.lock().expect("not poisoned").1 > 0
        });
    }

    /// Forwards the held requests and all later ones.
    pub fn release(&self) {
        self.state.release(Way::Passed);
    }

    /// Drops the held requests, whose sender was killed, and forwards all later ones.
    pub fn drop_held(&self) {
        self.state.release(Way::Dropped);
    }

    /// Checks that every trick was applied.
    pub fn check_fired(&self) {
        let left = self.state.tricks.lock().expect("not poisoned");
        assert!(left.is_empty(), "not played: {left:?}");
    }
}

impl State {
    fn release(&self, way: Way) {
        self.held.lock().expect("not poisoned").0 = Some(way);
        self.released.notify_all();
    }

    fn serve(&self, mut client: TcpStream, server: &str) -> std::io::Result<()> {
        let mut server = TcpStream::connect(server)?;
        let is_lost = Arc::new(AtomicBool::new(false));
        answer(
            server.try_clone()?,
            client.try_clone()?,
            Arc::clone(&is_lost),
        );
        // The preamble of a connection is not a message.
        let mut begin = [0; 7];
        client.read_exact(&mut begin)?;
        server.write_all(&begin)?;
        let forwarded = self.forward(&mut client, &mut server, &is_lost);
        let _ = (
            client.shutdown(Shutdown::Both),
            server.shutdown(Shutdown::Both),
        );
        forwarded
    }

    fn forward(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
        is_lost: &AtomicBool,
    ) -> std::io::Result<()> {
        loop {
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let mut message = vec![0; u32::from_be_bytes(length) as usize];
            client.read_exact(&mut message)?;
            let trick = if self.kind.is(&message) {
                self.next_trick()
            } else {
                Trick::Pass
            };
            match trick {
                Trick::Pass => {}
                Trick::Refuse => return Ok(()),
                Trick::Lose => is_lost.store(true, Ordering::SeqCst),
                Trick::Hold => {
                    let mut held = self.held.lock().expect("not poisoned");
                    held.1 += 1;
                    let held = self
                        .released
                        .wait_while(held, |held| held.0.is_none())
                        .expect("not poisoned");
                    if held.0 == Some(Way::Dropped) {
                        return Ok(());
                    }
                }
            }
            server.write_all(&length)?;
            server.write_all(&message)?;
        }
    }

    fn next_trick(&self) -> Trick {
        let mut tricks = self.tricks.lock().expect("not poisoned");
        // A held request delays later ones of its connection.
        match tricks.front() {
            Some(Trick::Hold) if self.held.lock().expect("not poisoned").0.is_none() => Trick::Hold,
            _ => tricks.pop_front().unwrap_or(Trick::Pass),
        }
    }
}

/// Forwards answers until one must be lost.
fn answer(mut server: TcpStream, mut client: TcpStream, is_lost: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(read @ 1..) = server.read(&mut bytes) {
            if is_lost.load(Ordering::SeqCst) || client.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = (
            client.shutdown(Shutdown::Both),
            server.shutdown(Shutdown::Both),
        );
    });
}
