//! A cluster of several hosts: a coordinator and two workers with separate network stacks, and a link that is
//! cut and healed. Needs root, `ip` and network namespaces; skipped without them.

mod network;

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use napreduce_tests::{Folder, program, run};
use serde_json::Value;

use network::Network;

/// The liveness limit of workers.
const LIVENESS: Duration = Duration::from_millis(1_500);
const DEADLINE: Duration = Duration::from_secs(180);

/// Processes of the test, which end with it.
struct Daemons(Vec<Child>);

impl Daemons {
    fn start(&mut self, mut command: Command, log: &Path) {
        let log = File::create(log).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log);
        self.0.push(command.spawn().expect("a daemon"));
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            // Fails if it has already ended.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(
            began.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns how many maps of the only job are done.
fn maps_done(network: &Network, directory: &Path) -> u64 {
    let mut command = network.inside(0, program("nap"));
    let listed = run(command
        .arg("--dir")
        .arg(directory)
        .args(["job", "list", "--format", "json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let text = listed.to_string();
    // Finds the job's map counts in the listing, whatever its structure.
    find(&listed, "map")
        .and_then(|map| map["done"].as_u64())
        .unwrap_or_else(|| {
            assert!(!text.contains("\"failed\""), "the job failed: {text}");
            0
        })
}

fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields
            .get(key)
            .or_else(|| fields.values().find_map(|field| find(field, key))),
        Value::Array(items) => items.iter().find_map(|item| find(item, key)),
        _ => None,
    }
}

#[test]
fn terasort_survives_cut_link() {
    let network = match Network::start() {
        Ok(network) => network,
        Err(why) => return println!("skipped: {why}"),
    };
    let folder = Folder::new();
    let directory = folder.path("cluster");
    let rows = folder.path("rows");
    let records = 600_000;
    run(program("datagen")
        .args(["tera", "--records", &records.to_string(), "--output"])
        .arg(&rows))
    .succeeded();
    let mut daemons = Daemons(Vec::new());

    let mut coordinator = network.inside(0, program("nap"));
    coordinator.arg("--dir").arg(&directory).args([
        "coordinator",
        "--bind",
        &format!("{}:0", network.host(0)),
    ]);
    coordinator.args(["--liveness", &format!("{}ms", LIVENESS.as_millis())]);
    daemons.start(coordinator, &folder.path("coordinator.log"));
    let published = directory.join("coordinator.json");
    wait_until("a coordinator that listens", || published.exists());
    let published: Value = serde_json::from_slice(&std::fs::read(published).expect("read"))
        .expect("coordinator.json is JSON");
    let address = published["address"]
        .as_str()
        .expect("an address")
        .to_owned();
    for worker in [1, 2] {
        let mut command = network.inside(worker, program("nap"));
        command
            .args(["worker", "--coordinator", &address, "--secret-file"])
            .arg(directory.join("secret"));
        command.args([
            "--name",
            &format!("host-{worker}"),
            "--map-slots",
            "1",
            "--reduce-slots",
            "1",
        ]);
        command
            .arg("--directory")
            .arg(folder.path(&format!("host-{worker}")));
        // The workers share this machine's files, unlike real hosts.
        command.args([
            "--network-shuffle",
            "--bind",
            &format!("{}:0", network.host(worker)),
        ]);
        daemons.start(command, &folder.path(&format!("host-{worker}.log")));
    }
    let mut waiting = network.inside(0, program("nap"));
    run(waiting.arg("--dir").arg(&directory).args([
        "worker",
        "list",
        "--wait",
        "2",
        "--timeout",
        "60s",
    ]))
    .succeeded();

    let output = folder.path("out");
    let mut sort = network.inside(0, program("terasort"));
    sort.arg(&rows).arg("--output").arg(&output).args([
        "--split-size",
        "1MiB",
        "--reduces",
        "3",
        "--quiet",
    ]);
    sort.arg("--cluster").arg(&directory);
    let sorting = std::thread::spawn(move || run(&mut sort));
    wait_until("some maps that are done", || {
        maps_done(&network, &directory) >= 8
    });
    assert!(
        !sorting.is_finished(),
        "the job ended before the link was cut; give it more rows"
    );
    network.cut(1);
    let log = folder.path("coordinator.log");
    wait_until("the loss of the worker behind the link", || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .contains("is lost: no message for")
    });
    network.heal(1);
    sorting.join().expect("no panic").succeeded();
    let came_back = std::fs::read_to_string(&log)
        .expect("a log")
        .matches("joined: host-1")
        .count();
    assert!(came_back <= 2, "it joined {came_back} times");
    let validated = run(program("datagen").arg("validate").arg(&output)).succeeded();
    assert!(
        validated.stdout.contains(&records.to_string()),
        "{}",
        validated.stdout
    );
}
