//! A proxy in front of a coordinator or of the data server of a worker. It forwards bytes, and can cut, delay
//! or silence connections, or refuse new ones. It counts the effects.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns whether a client address is refused.
pub type Refuse = Box<dyn Fn(SocketAddr) -> bool + Send>;

/// Forwards connections to a hidden address.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Delay of each chunk in milliseconds.
    delay: AtomicU64,
    delayed: AtomicU64,
    /// Forwards nothing, but keeps the connections and their bytes.
    silent: AtomicBool,
    silenced: AtomicU64,
    /// `None` refuses no client.
    refuse: Mutex<Option<Refuse>>,
    refused: AtomicU64,
    connections: Mutex<Vec<TcpStream>>,
    ended: AtomicBool,
}

impl Proxy {
    pub fn start(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the port it got");
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                if shared.refuses(&client) {
                    continue;
                }
                // The client must notice that the server is down.
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                shared.link(&client, &server);
            }
        });
        Proxy { address, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection; returns their number.
    pub fn cut(&self) -> usize {
        let connections = std::mem::take(&mut *self.state.connections.lock().expect("no panic"));
        // Each connection has two ends; a closed one is not counted.
        connections
            .iter()
            .filter(|connection| connection.shutdown(Shutdown::Both).is_ok())
            .count()
    }

    /// Delays every chunk.
    pub fn delay(&self, delay: Duration) {
        self.state.delay.store(
            u64::try_from(delay.as_millis()).expect("short"),
            Ordering::SeqCst,
        );
    }

    /// The number of delayed chunks.
    pub fn delayed(&self) -> u64 {
        self.state.delayed.load(Ordering::SeqCst)
    }

    /// Holds back all chunks, or stops doing so.
    pub fn silence(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    /// Refuses new connections of some clients.
    pub fn refuse(&self, whom: Option<Refuse>) {
        *self.state.refuse.lock().expect("no panic") = whom;
    }

    /// The number of refused connections.
    pub fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// The number of chunks held back.
    pub fn silenced(&self) -> u64 {
        self.state.silenced.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.state.silent.store(false, Ordering::SeqCst);
        self.cut();
        // Wakes the listener, so that it ends.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn refuses(&self, client: &TcpStream) -> bool {
        let refuse = self.refuse.lock().expect("no panic");
        let Some(refuse) = &*refuse else { return false };
        let refused = client.peer_addr().is_ok_and(refuse);
        self.refused.fetch_add(u64::from(refused), Ordering::SeqCst);
        refused
    }

    fn link(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        for stream in [client, server] {
            stream.set_nodelay(true).expect("a TCP connection");
        }
        self.connections
            .lock()
            .expect("no panic")
            .extend([clone(client), clone(server)]);
        for (from, to) in [(client, server), (server, client)] {
            let from = clone(from);
            let to = clone(to);
            let state = Arc::clone(self);
            std::thread::spawn(move || state.forward(from, to));
        }
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 64 << 10];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            if count == 0 {
                break;
            }
            if self.silent.load(Ordering::SeqCst) {
                self.silenced.fetch_add(1, Ordering::SeqCst);
                while self.silent.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            let delay = self.delay.load(Ordering::SeqCst);
            if delay > 0 {
                self.delayed.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(delay));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The other direction also ends; errors mean that it already has.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
