//! A NameNode and a DataNode for all tests of this process. Test files are written by Hadoop's own client.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdfs_native::WriteOptions;
use hdfs_native::sync::{Client, ClientBuilder};
use napreduce_tests::{Ended, run};

/// The nameservice under which programs find the NameNode.
const NAMESERVICE: &str = "books";
/// Two Java servers on a busy machine need a long time.
const START_MAX: Duration = Duration::from_secs(300);
/// Java packages that Hadoop 2.7 needs opened on a newer Java.
const OPENED: [&str; 5] = ["lang", "net", "nio", "util", "sun.nio.ch"];

/// The HDFS directory of one test.
pub struct Files {
    name: &'static str,
    /// The address of the NameNode.
    pub address: String,
    root: PathBuf,
    client: Client,
}

struct Server {
    _shell: Child,
    address: String,
    root: PathBuf,
}

static SERVER: Mutex<Option<Server>> = Mutex::new(None);

impl Files {
    /// Creates a directory; returns `None` with a message if there are no jars.
    pub fn create(name: &'static str) -> Option<Files> {
        let mut server = SERVER.lock().expect("no test panicked in here");
        let server = match &*server {
            Some(running) => running,
            None => server.insert(start()?),
        };
        let address = server.address.clone();
        let root = server.root.clone();
        let client = client(&address);
        let files = Files {
            name,
            address,
            root,
            client,
        };
        files
            .client
            .mkdirs(&files.path(""), 0o755, true)
            .expect("a directory");
        Some(files)
    }

    fn path(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
            .trim_end_matches('/')
            .to_owned()
    }

    pub fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        put(&self.client, &self.path(key), bytes.as_ref()).expect("a file");
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
        assert!(
            self.client
                .delete(&self.path(key), true)
                .expect("the NameNode answers")
        );
    }

    /// Makes a directory accessible to its owner only.
    pub fn close(&self, key: &str) {
        self.client
            .set_permission(&self.path(key), 0o700)
            .expect("it is there");
    }

    /// Returns the content of a file.
    pub fn get(&self, key: &str) -> Vec<u8> {
        let mut file = self.client.read(&self.path(key)).expect("it is there");
        file.read_bytes(file.file_length())
            .expect("it can be read")
            .to_vec()
    }

    /// Returns the names of all files, and of directories with a trailing slash, in order.
    pub fn keys(&self) -> Vec<String> {
        let listed = self
            .client
            .list_status(&self.path(""), true)
            .expect("it is there");
        let key = |path: &str| path[self.path("").len() + 1..].to_owned();
        let mut keys: Vec<String> = listed
            .iter()
            .map(|status| key(&status.path) + if status.isdir { "/" } else { "" })
            .collect();
        keys.sort();
        keys
    }

    /// Returns the URI of a file or directory.
    pub fn uri(&self, key: &str) -> String {
        format!("hdfs://{NAMESERVICE}{}", self.path(key))
    }

    /// Returns the URI with the address of the NameNode.
    pub fn uri_at(&self, key: &str) -> String {
        format!("hdfs://{}{}", self.address, self.path(key))
    }

    /// Environment of programs that connect to the NameNode or to the proxy.
    pub fn environment(&self, address: &str) -> Vec<(&'static str, String)> {
        let settings = self
            .root
            .join(format!("client-{}", address.replace(':', "-")));
        write_site(
            &settings,
            &[
                (&format!("dfs.ha.namenodes.{NAMESERVICE}"), "one"),
                (
                    &format!("dfs.namenode.rpc-address.{NAMESERVICE}.one"),
                    address,
                ),
            ],
        );
        vec![("HADOOP_CONF_DIR", settings.to_string_lossy().into_owned())]
    }

    /// Returns the command of a program of this package.
    pub fn program(&self, path: &str, address: &str) -> Command {
        let mut command = Command::new(path);
        command
            .stdin(Stdio::null())
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR");
        command.envs(self.environment(address));
        command
    }

    /// Runs `stored-words` with these arguments.
    pub fn words(&self, arguments: &[&str]) -> Ended {
        run(self
            .program(env!("CARGO_BIN_EXE_stored-words"), &self.address)
            .args(arguments))
    }
}

pub fn client(address: &str) -> Client {
    ClientBuilder::new()
        .with_url(format!("hdfs://{address}"))
        .build()
        .expect("an address")
}

fn put(client: &Client, path: &str, bytes: &[u8]) -> hdfs_native::Result<()> {
    let mut file = client.create(path, WriteOptions::default().overwrite(true))?;
    if !bytes.is_empty() {
        file.write_bytes(bytes.to_vec().into())?;
    }
    file.close()
}

/// Writes settings in Hadoop's XML format.
fn write_site(folder: &Path, values: &[(&str, &str)]) {
    let property = |(name, value): &(&str, &str)| {
        format!("<property><name>{name}</name><value>{value}</value></property>\n")
    };
    let text = format!(
        "<configuration>\n{}</configuration>\n",
        values.iter().map(property).collect::<String>()
    );
    std::fs::create_dir_all(folder).expect("a folder");
    // Other threads may read the file at this moment.
    let new = folder.join(format!("new-{:?}", std::thread::current().id()));
    std::fs::write(&new, &text)
        .and_then(|()| std::fs::rename(&new, folder.join("hdfs-site.xml")))
        .expect("a file");
}

/// Returns the class path of Hadoop's servers.
fn jars() -> Option<String> {
    let jars = std::env::var("NAPREDUCE_HADOOP_JARS")
        .ok()
        .filter(|jars| Path::new(jars).is_dir());
    if jars.is_none() {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|name| name == "hdfs"),
            "HDFS is required, and NAPREDUCE_HADOOP_JARS is not the folder of its jars"
        );
        eprintln!(
            "skipped: there is no HDFS; install pyspark 2.4.8 and set NAPREDUCE_HADOOP_JARS to its folder jars, as docs/object-stores.md says"
        );
    }
    jars
}

fn start() -> Option<Server> {
    let jars = jars()?;
    let made = Command::new("mktemp")
        .args(["-d", "-t", "napreduce-test-XXXXXX"])
        .output()
        .expect("a folder");
    let root = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
    // Hadoop requires the directory of its web pages, even if it is empty.
    std::fs::create_dir_all(root.join("server/webapps/hdfs")).expect("a folder");
    std::fs::create_dir_all(root.join("server/webapps/datanode")).expect("a folder");
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a port")
        .port();
    let address = format!("127.0.0.1:{port}");
    let place = |name: &str| format!("file://{}", root.join(name).display());
    let site = [
        ("fs.defaultFS", format!("hdfs://{address}")),
        ("dfs.namenode.name.dir", place("name")),
        ("dfs.datanode.data.dir", place("data")),
        ("dfs.namenode.http-address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.http.address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.ipc.address", "127.0.0.1:0".to_owned()),
        ("dfs.webhdfs.enabled", "false".to_owned()),
        ("dfs.replication", "1".to_owned()),
        ("dfs.heartbeat.interval", "1".to_owned()),
        // So that test files have several blocks.
        ("dfs.namenode.fs-limits.min-block-size", "0".to_owned()),
        ("dfs.blocksize", "262144".to_owned()),
    ];
    let site: Vec<(&str, &str)> = site
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    write_site(&root.join("server"), &site);
    std::fs::copy(
        root.join("server/hdfs-site.xml"),
        root.join("server/core-site.xml"),
    )
    .expect("a copy");
    let opened = OPENED.map(|package| {
        let package = if package.starts_with("sun") {
            package.to_owned()
        } else {
            format!("java.{package}")
        };
        format!("--add-opens java.base/{package}=ALL-UNNAMED")
    });
    let java = format!(
        "java {} -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp \"$0/server:$1/*\"",
        opened.join(" ")
    );
    let node = "org.apache.hadoop.hdfs.server";
    // Standard input closes when this process ends, and then both servers end.
    let script = format!(
        "{java} {node}.namenode.NameNode -format -nonInteractive || exit 1\n\
         {java} {node}.namenode.NameNode & name=$!\n\
         {java} {node}.datanode.DataNode & data=$!\n\
         read line; kill $name $data; wait; rm -rf \"$0\""
    );
    let log = std::fs::File::create(root.join("log")).expect("a file");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .arg(&root)
        .arg(jars)
        .stdin(Stdio::piped());
    shell.stdout(log.try_clone().expect("a file")).stderr(log);
    let shell = shell.spawn().expect("there is a shell");
    let client = client(&address);
    let began = Instant::now();
    while put(&client, "/ready", b"ready").is_err() {
        assert!(
            began.elapsed() < START_MAX,
            "HDFS does not start: see {}",
            root.join("log").display()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(Server {
        _shell: shell,
        address,
        root,
    })
}
