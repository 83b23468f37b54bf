//! The service with 20 jobs at once: one fails, one is cancelled, the others count; its signals are its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

struct Service {
    process: Child,
    errors: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Service {
    fn start() -> Service {
        let mut process = Command::new(env!("CARGO_BIN_EXE_word-service"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let mut errors = BufReader::new(process.stderr.take().expect("its standard error"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("its address");
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .expect("its address")
            .to_owned();
        Service {
            process,
            errors,
            address,
        }
    }

    /// Returns the status and the body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(&self.address, method, path, body)
    }
}

fn ask(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream
        .write_all(request.as_bytes())
        .expect("it reads the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer
        .split(' ')
        .nth(1)
        .expect("a status")
        .parse()
        .expect("a number");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (status, body.to_owned())
}

#[test]
fn jobs_of_requests_run_at_once() {
    let mut service = Service::start();
    // Long enough to be cancelled while it runs.
    let long = "to be or not to be\n".repeat(100_000);
    let (status, cancelled) = service.ask("POST", "/jobs", &long);
    assert_eq!(status, 200, "{cancelled}");
    let cancelled = cancelled.trim().to_owned();
    let (status, failing) = service.ask("POST", "/jobs", "to be\n!\n");
    assert_eq!(status, 200, "{failing}");
    let counting: Vec<_> = (0..18)
        .map(|number| {
            let address = service.address.clone();
            thread::spawn(move || {
                let text = format!("job {number}\n").repeat(number + 1);
                let (status, job) = ask(&address, "POST", "/jobs", &text);
                assert_eq!(status, 200, "{job}");
                let (_, progress) = ask(
                    &address,
                    "GET",
                    &format!("/jobs/{}/progress", job.trim()),
                    "",
                );
                let (status, counts) = ask(&address, "GET", &format!("/jobs/{}", job.trim()), "");
                assert_eq!(status, 200, "{counts}");
                let count = number + 1;
                assert_eq!(counts, format!("{number}\t{count}\njob\t{count}\n"));
                progress
            })
        })
        .collect();
    let (status, _) = service.ask("DELETE", &format!("/jobs/{cancelled}"), "");
    assert_eq!(status, 200);
    let (status, reason) = service.ask("GET", &format!("/jobs/{cancelled}"), "");
    assert_eq!(status, 500);
    assert!(reason.contains("a request cancelled it"), "{reason}");
    let (status, reason) = service.ask("GET", &format!("/jobs/{}", failing.trim()), "");
    assert_eq!(status, 500);
    assert!(reason.contains("cannot count \"!\""), "{reason}");
    let progress: Vec<String> = counting
        .into_iter()
        .map(|job| job.join().expect("it counts"))
        .collect();
    assert!(
        progress.iter().any(|lines| lines.contains("maps 1/1")),
        "{progress:?}"
    );
    assert_eq!(service.ask("GET", "/jobs/999", "").0, 404);

    let pid = Pid::from_child(&service.process);
    kill_process(pid, Signal::TERM).expect("the service gets its signal");
    assert!(
        service.process.wait().expect("it ends").success(),
        "it handles SIGTERM itself"
    );
    let mut rest = String::new();
    service
        .errors
        .read_to_string(&mut rest)
        .expect("its standard error");
    assert_eq!(rest, "stopped\n", "jobs print nothing");
}

/// A service has no code before its `main`: asked to be a fork server, it is a task process that waits for its first message.
#[test]
fn service_is_no_fork_server() {
    let (ours, theirs) = UnixStream::pair().expect("a channel");
    let mut process = Command::new(env!("CARGO_BIN_EXE_word-service"))
        .args(["--napreduce-fork-process", &std::process::id().to_string()])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the service starts");
    let mut greeting = [0];
    (&ours).read_exact(&mut greeting).expect("it says hello");
    assert_ne!(&greeting, b"N", "NAPFORK1 is the greeting of a fork server");
    drop(ours);
    process.wait().expect("it ends");
}
