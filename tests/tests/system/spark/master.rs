//! The Spark master of `NAPREDUCE_SPARK_MASTER`: local, a cluster, or a standalone master and worker that end
//! with this process.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use napreduce_tests::{Process, free_address};

/// Two Java servers on a busy machine need a long time.
const START_MAX: Duration = Duration::from_secs(240);

/// Shared by all tests of this process.
static STANDALONE: OnceLock<Standalone> = OnceLock::new();

struct Standalone {
    _shell: Child,
    master: String,
}

/// Returns the value for `--on`: that of `NAPREDUCE_SPARK_MASTER`, or `local[2]`. For `standalone`, starts a
/// master and a worker.
pub fn master(python: &str) -> String {
    match std::env::var("NAPREDUCE_SPARK_MASTER") {
        Ok(named) if named == "standalone" => {
            STANDALONE.get_or_init(|| start(python)).master.clone()
        }
        Ok(named) if !named.is_empty() => named,
        _ => "local[2]".to_owned(),
    }
}

/// Returns the executor that runs a guest: its nearest Java ancestor.
pub fn executor_of(guest: i32) -> Option<Process> {
    let mut above = Process::of(guest.cast_unsigned());
    while let Some(process) = above {
        if process.is_named("java") {
            return Some(process);
        }
        above = process.parent();
    }
    None
}

fn start(python: &str) -> Standalone {
    let home = Command::new(python)
        .args([
            "-c",
            "import os, pyspark; print(os.path.dirname(pyspark.__file__))",
        ])
        .output();
    let home = String::from_utf8(home.expect("it ran before").stdout)
        .expect("a path")
        .trim()
        .to_owned();
    let made = Command::new("mktemp")
        .args(["-d", "-t", "napreduce-test-XXXXXX"])
        .output()
        .expect("a folder");
    let work = String::from_utf8(made.stdout)
        .expect("a path")
        .trim()
        .to_owned();
    let port = free_address().port();
    let address = format!("127.0.0.1:{port}");
    let master = format!("spark://127.0.0.1:{port}");
    // Standard input closes when this process ends, and then both servers end; the worker ends its executors.
    let script = "\"$0\" org.apache.spark.deploy.master.Master --host 127.0.0.1 --port \"$2\" --webui-port 0 & master=$!\n\
         \"$0\" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 --cores 2 --memory 4g \\\n\
           --work-dir \"$1\" \"spark://127.0.0.1:$2\" & worker=$!\n\
         read line; kill $worker $master; wait; rm -rf \"$1\"";
    let log = std::fs::File::create(Path::new(&work).join("log")).expect("a file");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        script,
        &format!("{home}/bin/spark-class"),
        &work,
        &port.to_string(),
    ]);
    shell
        .env("SPARK_HOME", &home)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("PYSPARK_PYTHON", python);
    shell
        .stdin(Stdio::piped())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log);
    let shell = shell.spawn().expect("there is a shell");
    let began = Instant::now();
    while TcpStream::connect(&address).is_err() {
        assert!(
            began.elapsed() < START_MAX,
            "the master does not start: see {work}/log"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    Standalone {
        _shell: shell,
        master,
    }
}
