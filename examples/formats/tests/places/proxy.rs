//! A proxy between a program and the server that injects faults into requests of one kind.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use napreduce_tests::wait_until;

/// The action of the proxy on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trick {
    Pass,
    /// Answers with this status.
    Status(u16),
    /// The response ends after this many bytes of the object.
    Cut(usize),
    /// Holds this request and all later ones until the test releases them.
    Hold,
    /// Forwards the request, and drops the answer.
    Lose,
    /// Never answers.
    Ignore,
}

/// Selects the affected requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Requests for bytes of an object.
    Read,
    /// Requests that send a part of an upload.
    SendPart,
    /// Requests that turn an upload into an object.
    Complete,
    /// Requests that write a whole object whose name ends like this.
    Put(&'static str),
    /// Requests that remove an object whose name ends like this.
    Remove(&'static str),
    /// All requests.
    Any,
}

impl Kind {
    /// Returns whether a request has this kind, by its head in lower case and its body.
    fn is(self, head: &str, body: &[u8]) -> bool {
        let target = head.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // Requests to Google encode every special character of a key.
        let path = path
            .replace("%2f", "/")
            .replace("%2e", ".")
            .replace("%5f", "_");
        match self {
            Kind::Read => head.starts_with("get ") && head.contains("\r\nrange:"),
            Kind::SendPart => {
                head.starts_with("put ")
                    && (query.contains("partnumber=") || query.contains("comp=block&"))
            }
            Kind::Complete => {
                let is_of_s3 = head.starts_with("post ") && query.contains("uploadid=");
                is_of_s3 || head.starts_with("put ") && query.contains("comp=blocklist")
            }
            Kind::Put(name) => head.starts_with("put ") && query.is_empty() && path.ends_with(name),
            Kind::Remove(name) => {
                // S3 and Azure remove lists of objects.
                let is_list = query.contains("comp=batch") || query.starts_with("delete");
                let is_in_list = is_list && String::from_utf8_lossy(body).contains(name);
                is_in_list
                    || head.starts_with("delete ") && query.is_empty() && path.ends_with(name)
            }
            Kind::Any => true,
        }
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
    /// Applies each trick to one read request; later requests are forwarded.
    pub fn before(server: &str, tricks: &[Trick]) -> Proxy {
        Proxy::on(Kind::Read, server, tricks)
    }

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
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if client.read(&mut byte)? == 0 {
                return Ok(());
            }
            head.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let mut body = vec![0; length_of(&text)];
        client.read_exact(&mut body)?;
        let trick = if self.kind.is(&text, &body) {
            self.next_trick()
        } else {
            Trick::Pass
        };
        if let Trick::Status(status) = trick {
            let body = "<Error><Code>SlowDown</Code></Error>";
            let length = body.len();
            return write!(
                client,
                "HTTP/1.1 {status} No\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
        if trick == Trick::Ignore {
            // Until the client disconnects.
            return client.read_to_end(&mut Vec::new()).map(drop);
        }
        if trick == Trick::Hold {
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
        let mut server = TcpStream::connect(server)?;
        // The server closes each connection after its response.
        let end = head.len() - 2;
        server.write_all(&[&head[..end], b"Connection: close\r\n\r\n", &body].concat())?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let body = answer
            .windows(4)
            .position(|end| end == b"\r\n\r\n")
            .map_or(answer.len(), |at| at + 4);
        let sent = match trick {
            Trick::Lose => return Ok(()),
            Trick::Cut(bytes) => &answer[..answer.len().min(body + bytes)],
            _ => &answer[..],
        };
        client.write_all(sent)
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

/// Returns the length of the body after a head.
fn length_of(head: &str) -> usize {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    line.and_then(|length| length.trim().parse().ok())
        .unwrap_or(0)
}
