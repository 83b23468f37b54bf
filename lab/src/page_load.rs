//! Owns readers of a cluster's page, as many browsers and programs are: streams of events that are read to
//! the end, and requests at a steady pace. What is measured meanwhile belongs to the experiment.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Streams that are open.
pub const STREAMS: u32 = 16;
/// Requests in a second, of all connections.
pub const REQUESTS_PER_SECOND: u32 = 100;
/// Connections that ask.
const CONNECTIONS: u32 = 4;
/// What is asked for, in turns: what the pages of a cluster ask.
const PATHS: [&str; 5] = ["cluster", "jobs", "timeline", "preemptions", "workers"];
/// A server that says nothing for so long is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Where a page is, and what lets one read it.
#[derive(Clone, Debug)]
pub struct PagePlace {
    pub address: SocketAddr,
    /// Of the role view.
    pub token: String,
}

/// What was asked and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageFigures {
    pub requests: u64,
    /// Requests and streams that were not answered with 200.
    pub not_answered: u64,
    /// Events that came, of all streams.
    pub events: u64,
}

/// Readers of a page, until this is stopped or dropped.
#[derive(Debug)]
pub struct PageLoad {
    shared: Arc<Shared>,
    streams: Vec<TcpStream>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    requests: AtomicU64,
    not_answered: AtomicU64,
    events: AtomicU64,
}

impl PageFigures {
    /// The sums of both.
    #[must_use]
    pub fn with(self, other: PageFigures) -> PageFigures {
        PageFigures {
            requests: self.requests + other.requests,
            not_answered: self.not_answered + other.not_answered,
            events: self.events + other.events,
        }
    }
}

impl PageLoad {
    /// Opens the streams and begins to ask.
    ///
    /// # Errors
    /// When nobody listens at that place.
    pub fn start(place: &PagePlace) -> io::Result<PageLoad> {
        let mut load = PageLoad { shared: Arc::default(), streams: Vec::new(), readers: Vec::new() };
        for _ in 0..STREAMS {
            let stream = connect(place)?;
            load.streams.push(stream.try_clone()?);
            let (shared, place) = (load.shared.clone(), place.clone());
            load.readers.push(thread::spawn(move || {
                let read = listen(&shared, &place, stream);
                shared.count_failure(read);
            }));
        }
        for number in 0..CONNECTIONS {
            let connection = connect(place)?;
            let (shared, place) = (load.shared.clone(), place.clone());
            load.readers.push(thread::spawn(move || {
                let asked = ask(&shared, &place, connection, number);
                shared.count_failure(asked);
            }));
        }
        Ok(load)
    }

    /// Ends it; what it came to.
    pub fn stop(mut self) -> PageFigures {
        self.end();
        let shared = &self.shared;
        PageFigures {
            requests: shared.requests.load(Relaxed),
            not_answered: shared.not_answered.load(Relaxed),
            events: shared.events.load(Relaxed),
        }
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        for stream in self.streams.drain(..) {
            // One that is closed already needs no end.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for reader in self.readers.drain(..) {
            // A reader that panicked has said so.
            let _ = reader.join();
        }
    }
}

impl Drop for PageLoad {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// What breaks off at the end is no failure.
    fn count_failure(&self, result: io::Result<()>) {
        if result.is_err() && !self.is_over() {
            self.not_answered.fetch_add(1, Relaxed);
        }
    }
}

fn connect(place: &PagePlace) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(place.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    Ok(stream)
}

fn send(place: &PagePlace, path: &str, connection: &mut impl Write) -> io::Result<()> {
    let PagePlace { address, token } = place;
    let head = format!(
        "GET /api/nap/v1/{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    connection.write_all(head.as_bytes())
}

/// Reads a head; its status, and how many bytes follow.
fn head(reader: &mut impl BufRead) -> io::Result<(u16, u64)> {
    let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| damaged("no status"))?;
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(damaged("the head breaks off"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok((status, length)) };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| damaged("no length"))?;
        }
    }
}

fn listen(shared: &Shared, place: &PagePlace, mut stream: TcpStream) -> io::Result<()> {
    send(place, "stream?topics=cluster,jobs,workers,preemptions", &mut stream)?;
    let mut reader = BufReader::new(stream);
    let (status, _) = head(&mut reader)?;
    if status != 200 {
        return Err(io::Error::other(format!("status {status}")));
    }
    let mut line = String::new();
    while !shared.is_over() {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.starts_with("event:") {
            shared.events.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

/// Asks at its moments, and at once when it is late: a slow server is asked no less.
fn ask(shared: &Shared, place: &PagePlace, connection: TcpStream, number: u32) -> io::Result<()> {
    let mut writer = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    let each = Duration::from_secs(1) / REQUESTS_PER_SECOND;
    let mut next = Instant::now() + each * number;
    let mut paths = PATHS.iter().cycle().skip(number as usize);
    while !shared.is_over() {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += each * CONNECTIONS;
        let Some(path) = paths.next() else { return Ok(()) };
        send(place, path, &mut writer)?;
        let (status, length) = head(&mut reader)?;
        io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
        shared.requests.fetch_add(1, Relaxed);
        if status != 200 {
            shared.not_answered.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers each request with its path, and streams with events without end.
    fn serve(connection: TcpStream) -> io::Result<()> {
        let mut writer = connection.try_clone()?;
        let mut reader = BufReader::new(connection);
        loop {
            let mut asked = String::new();
            reader.read_line(&mut asked)?;
            let mut line = String::from("-");
            while !line.trim_end().is_empty() {
                line.clear();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
            }
            if asked.contains("/stream?") {
                writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
                loop {
                    writer.write_all(b"event: job\ndata: {}\n\n")?;
                    thread::sleep(Duration::from_millis(1));
                }
            }
            let status = if asked.contains("workers") { "503 Gone" } else { "200 OK" };
            write!(writer, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{asked}", asked.len())?;
        }
    }

    #[test]
    fn streams_are_read_and_requests_are_counted_with_those_that_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = PagePlace { address: listener.local_addr().unwrap(), token: "t".to_owned() };
        // It ends with the process of the test.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                thread::spawn(move || serve(connection));
            }
        });
        let load = PageLoad::start(&place).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let enough =
            |shared: &Shared| shared.requests.load(Relaxed) >= 10 && shared.events.load(Relaxed) > 100;
        while !enough(&load.shared) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let figures = load.stop();
        assert!(figures.requests >= 10 && figures.events > 100, "{figures:?}");
        assert!(figures.not_answered >= 2 && figures.not_answered < figures.requests, "{figures:?}");
    }

    #[test]
    fn nobody_there_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = PagePlace { address: listener.local_addr().unwrap(), token: String::new() };
        drop(listener);
        assert!(PageLoad::start(&place).is_err());
    }
}
