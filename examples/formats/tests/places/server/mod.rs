//! Servers of the store protocols for all tests of this process.

mod azurite;
mod google;
mod moto;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use napreduce_tests::{Ended, run, wait_until};

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// A server with the S3 protocol.
    Moto,
    /// A server with the Azure protocol.
    Azurite,
    /// A server with the Google protocol.
    Google,
}

/// How to start, find and access a kind of server.
pub struct Dialect {
    /// Its name in `NAPREDUCE_REQUIRE`, its command, and the remedy if it is missing.
    name: &'static str,
    program: fn() -> String,
    install: &'static str,
    /// Its arguments; `PORT` is replaced by its port.
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    /// Texts of a request: before the bucket, at the end of the query, and additional lines of the head.
    root: &'static str,
    question: &'static str,
    head: &'static str,
    /// Queries that create a bucket, list its objects, and list its pending uploads; the element that names
    /// an object in answers.
    create: &'static str,
    list: &'static str,
    list_uploads: &'static str,
    element: &'static str,
    /// Begins an upload of an object.
    begin: (&'static str, &'static str),
    /// The URI of an object: before and after the bucket.
    scheme: &'static str,
    host: &'static str,
    /// The common name of the service, the feature of programs that supports it, and the variables that
    /// daemons pass to tasks.
    pub service: &'static str,
    pub feature: &'static str,
    pub passed: &'static str,
    /// Secrets of the tests: no error, log or journal may contain them.
    pub secret: &'static str,
    /// Variables: the credentials, one that disables them, one that points to an address without a server,
    /// and those that errors name as a remedy.
    pub credentials: &'static [&'static str],
    pub unsigned: &'static str,
    pub elsewhere: &'static [(&'static str, &'static str)],
    pub remedy: &'static str,
    /// The environment of programs, without the address.
    environment: &'static [(&'static str, &'static str)],
    endpoint: &'static str,
}

impl Server {
    pub fn dialect(self) -> &'static Dialect {
        match self {
            Server::Moto => &moto::DIALECT,
            Server::Azurite => &azurite::DIALECT,
            Server::Google => &google::DIALECT,
        }
    }

    /// Returns the environment with which programs find the store, including credentials.
    pub fn environment(self, address: &str) -> Vec<(&'static str, String)> {
        let dialect = self.dialect();
        let mut variables = vec![(
            dialect.endpoint,
            format!("http://{address}{}", dialect.root),
        )];
        variables.extend(
            dialect
                .environment
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        variables
    }

    /// Returns the URI of a bucket, with the slash before a key.
    pub fn root_of(self, bucket: &str) -> String {
        let dialect = self.dialect();
        format!("{}{bucket}{}", dialect.scheme, dialect.host)
    }
}

/// Generates a test for each script and each kind of server.
macro_rules! on_each_server {
    ($($script:ident),+ $(,)?) => {
        mod moto {
            $(#[test] fn $script() { super::$script(crate::server::Server::Moto); })+
        }
        mod azurite {
            $(#[test] fn $script() { super::$script(crate::server::Server::Azurite); })+
        }
        mod google {
            $(#[test] fn $script() { super::$script(crate::server::Server::Google); })+
        }
    };
}
pub(crate) use on_each_server;

/// A bucket of one test.
pub struct Bucket {
    pub server: Server,
    pub name: &'static str,
    /// The address of the server.
    pub address: String,
}

static SERVERS: Mutex<BTreeMap<Server, (Child, String)>> = Mutex::new(BTreeMap::new());

impl Bucket {
    /// Creates a bucket; returns `None` with a message if there is no server.
    pub fn create(server: Server, name: &'static str) -> Option<Bucket> {
        let mut servers = SERVERS.lock().expect("no test panicked in here");
        let (_, address) = match servers.entry(server) {
            Entry::Occupied(started) => started.into_mut(),
            Entry::Vacant(none) => none.insert(start(server)?),
        };
        let bucket = Bucket {
            server,
            name,
            address: address.clone(),
        };
        drop(servers);
        bucket.ask("PUT", "", server.dialect().create, b"");
        Some(bucket)
    }

    pub fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        self.ask("PUT", key, "", bytes.as_ref());
    }

    /// Uploads the files of a folder under the same names.
    pub fn put_all(&self, folder: &Path, below: &str) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                self.put_all(&path, &format!("{below}{name}/"));
            } else {
                self.put(
                    &format!("{below}{name}"),
                    std::fs::read(&path).expect("a file"),
                );
            }
        }
    }

    pub fn remove(&self, key: &str) {
        self.ask("DELETE", key, "", b"");
    }

    /// Returns the URI of an object or prefix.
    pub fn uri(&self, key: &str) -> String {
        format!("{}/{key}", self.root())
    }

    pub fn root(&self) -> String {
        self.server.root_of(self.name)
    }

    /// Returns the command of a program of this package that uses the server, or the proxy in front of it, as
    /// the store.
    pub fn program(&self, path: &str, address: &str) -> Command {
        let mut command = Command::new(path);
        command
            .stdin(Stdio::null())
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR");
        command.envs(self.server.environment(address));
        command
    }

    /// Runs `stored-words` with these arguments.
    pub fn words(&self, arguments: &[&str]) -> Ended {
        run(self
            .program(env!("CARGO_BIN_EXE_stored-words"), &self.address)
            .args(arguments))
    }

    /// Returns the content of an object.
    pub fn get(&self, key: &str) -> Vec<u8> {
        self.ask("GET", key, "", b"")
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.listed(self.server.dialect().list)
    }

    /// Returns the keys of all pending uploads. Azure lists only those without an existing object.
    pub fn uploads(&self) -> Vec<String> {
        let mut listed = self.listed(self.server.dialect().list_uploads);
        if self.server == Server::Azurite {
            let seen = self.keys();
            listed.retain(|key| !seen.contains(key));
        }
        listed
    }

    fn listed(&self, question: &str) -> Vec<String> {
        texts(
            &self.ask("GET", "", question, b""),
            self.server.dialect().element,
        )
    }

    /// Begins an upload as another program.
    pub fn begin_upload(&self, key: &str) {
        let (method, question) = self.server.dialect().begin;
        self.ask(method, key, question, b"");
    }

    /// Sends a request; returns the body of the answer.
    fn ask(&self, method: &str, key: &str, question: &str, body: &[u8]) -> Vec<u8> {
        let Dialect {
            root,
            question: always,
            head,
            ..
        } = self.server.dialect();
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        // The older HTTP version makes the server send the answer in one piece.
        let head = format!(
            "{method} {root}/{}/{}?{question}{always} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {}\r\n{head}Connection: close\r\n\r\n",
            self.name,
            escaped(key),
            self.address,
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body))
            .expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        assert!(line.contains(" 20"), "{method} {key}: {line}");
        let head = answer
            .windows(4)
            .position(|end| end == b"\r\n\r\n")
            .expect("a head");
        answer.split_off(head + 4)
    }
}

/// Returns the content of every element of this name.
fn texts(body: &[u8], element: &str) -> Vec<String> {
    let begin = format!("<{element}>");
    let end = format!("</{element}>");
    let text = String::from_utf8_lossy(body);
    let texts = text
        .split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split_once(&end));
    texts.map(|(text, _)| text.to_owned()).collect()
}

/// Encodes a key for the first line of a request.
fn escaped(key: &str) -> String {
    let letter = |byte: u8| match byte {
        b'/' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(letter).collect()
}

fn start(server: Server) -> Option<(Child, String)> {
    let Dialect {
        name,
        program,
        install,
        arguments,
        variables,
        ..
    } = server.dialect();
    let program = program();
    let found = Command::new(&program)
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|one| one == *name);
        assert!(
            !is_required,
            "{name} is required, and {program} does not run; {install}"
        );
        eprintln!("skipped: {program} does not run; {install}");
        return None;
    }
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a port")
        .port();
    let address = format!("127.0.0.1:{port}");
    // Standard input closes when this process ends, and then the server ends.
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "\"$@\" & server=$!; read line; kill $server",
        "sh",
        &program,
    ]);
    let with_port = |argument: &&str| argument.replace("PORT", &port.to_string());
    shell
        .args(arguments.iter().map(with_port))
        .envs(variables.iter().copied());
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let running = shell.spawn().expect("there is a shell");
    wait_until(&program, || TcpStream::connect(&address).is_ok());
    Some((running, address))
}
