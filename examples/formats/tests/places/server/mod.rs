//! A server that speaks S3, for all tests of this process.
//!
//! Owns its start, its end with this process, and putting objects there. Does not own what is read.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use napreduce_tests::{Ended, run, wait_until};

/// What credentials of tests are: no error, log or journal may hold it.
pub const SECRET: &str = "wJalrXUtnFEMI-only-for-tests";

/// A bucket of one test.
pub struct Bucket {
    pub name: &'static str,
    /// Where the server listens.
    pub address: String,
}

static SERVER: Mutex<Option<(Child, String)>> = Mutex::new(None);

impl Bucket {
    /// A new bucket; `None` where there is no server, which is said.
    pub fn create(name: &'static str) -> Option<Bucket> {
        let mut server = SERVER.lock().expect("no test panicked in here");
        let (_, address) = match &*server {
            Some(running) => running,
            None => server.insert(start()?),
        };
        let bucket = Bucket { name, address: address.clone() };
        drop(server);
        bucket.ask("PUT", "", b"");
        Some(bucket)
    }

    pub fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        self.ask("PUT", key, bytes.as_ref());
    }

    /// Puts what is in a folder under the same names.
    pub fn put_all(&self, folder: &Path, below: &str) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                self.put_all(&path, &format!("{below}{name}/"));
            } else {
                self.put(&format!("{below}{name}"), std::fs::read(&path).expect("a file"));
            }
        }
    }

    pub fn remove(&self, key: &str) {
        self.ask("DELETE", key, b"");
    }

    /// The name of an object, or of what begins with it.
    pub fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    /// A program of this package, which finds the server, or what stands before it, where it looks for S3.
    pub fn program(&self, path: &str, address: &str) -> Command {
        let mut command = Command::new(path);
        command.stdin(Stdio::null()).env_remove("NAPREDUCE_CLUSTER").env_remove("NAPREDUCE_DIR");
        command.envs(environment(address));
        command
    }

    /// Runs `stored-words` with these arguments.
    pub fn words(&self, arguments: &[&str]) -> Ended {
        run(self.program(env!("CARGO_BIN_EXE_stored-words"), &self.address).args(arguments))
    }

    /// What is in an object.
    pub fn get(&self, key: &str) -> Vec<u8> {
        self.ask("GET", key, b"")
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        texts(&self.ask("GET", "?list-type=2", b""), "Key")
    }

    /// The keys of all uploads that were begun and neither completed nor dropped.
    pub fn uploads(&self) -> Vec<String> {
        texts(&self.ask("GET", "?uploads", b""), "Key")
    }

    /// Begins an upload, as another program would.
    pub fn begin_upload(&self, key: &str) {
        self.ask("POST", &format!("{key}?uploads"), b"");
    }

    /// The body of the answer. What stands behind a question mark is sent as it is.
    fn ask(&self, method: &str, key: &str, body: &[u8]) -> Vec<u8> {
        let (key, query) =
            key.split_once('?').map_or((key, String::new()), |(key, query)| (key, format!("?{query}")));
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        // The server does not look at signatures; what has none is of a stranger.
        let head = format!(
            "{method} /{}/{}{query} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, \
             Signature=0\r\nConnection: close\r\n\r\n",
            self.name,
            escaped(key),
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        assert!(line.contains(" 20"), "{method} {key}: {line}");
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
        answer.split_off(head + 4)
    }
}

/// What stands in every element of this name.
fn texts(body: &[u8], element: &str) -> Vec<String> {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let text = String::from_utf8_lossy(body);
    let texts = text.split(&begin).skip(1).filter_map(|rest| rest.split_once(&end));
    texts.map(|(text, _)| text.to_owned()).collect()
}

/// As a key stands in the first line of a request.
fn escaped(key: &str) -> String {
    let letter = |byte: u8| match byte {
        b'/' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(letter).collect()
}

/// Where programs find S3, and with which credentials.
pub fn environment(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKIAONLYFORTESTS".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
    ]
}

fn start() -> Option<(Child, String)> {
    let found =
        Command::new("moto_server").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|name| name == "moto"),
            "moto_server is required and is not on the PATH"
        );
        eprintln!("skipped: there is no moto_server; install it with: pip install 'moto[server]'");
        return None;
    }
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let address = format!("127.0.0.1:{port}");
    // Its input ends with this process, and then the server does.
    let mut shell = Command::new("sh");
    shell.args(["-c", "moto_server -H 127.0.0.1 -p $0 & server=$!; read line; kill $server"]);
    shell.arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = shell.spawn().expect("there is a shell");
    wait_until("moto_server", || TcpStream::connect(&address).is_ok());
    Some((server, address))
}
