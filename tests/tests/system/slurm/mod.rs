//! Workers in allocations of a real Slurm: a preempted allocation, and scaling by demand. Needs root and
//! Debian's
//! `slurm-wlm` and `munge`; skipped without them, unless `NAPREDUCE_REQUIRE` lists `slurm`.

mod cluster;

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::Duration;

use cluster::Slurm;
use napreduce_tests::{Folder, GatedJob, OwnCluster, counter, run, skipped, wait_until};

fn slurm(folder: &Folder) -> Option<Slurm> {
    match Slurm::start(folder) {
        Ok(slurm) => Some(slurm),
        Err(why) => {
            skipped("slurm", &why);
            None
        }
    }
}

/// Returns the ID of the running worker whose name begins like this.
fn up(cluster: &OwnCluster, begins: &str) -> Option<String> {
    let listed = cluster.json(&["worker", "list"]);
    let mut workers = listed.as_array().expect("an array").iter();
    let named = workers.find(|worker| {
        worker["state"] == "up"
            && worker["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(begins))
    });
    named.map(|worker| worker["worker"].as_str().expect("a number").to_owned())
}

#[test]
fn preempted_slurm_allocation_saves_its_work() {
    let folder = Folder::new();
    let Some(slurm) = slurm(&folder) else { return };
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let nap = cluster.nap().get_program().display().to_string();
    let own = folder.path("allocated");
    let script = format!(
        "exec {nap} worker --dir {} --name allocated --directory {} --map-slots 1 --reduce-slots 1",
        cluster.directory().display(),
        own.display()
    );
    let log = folder.path("allocated.log").display().to_string();
    let allocation = slurm.submit(
        &[
            "-p",
            "low",
            "--exclusive",
            "--output",
            &log,
            "--open-mode=append",
        ],
        &script,
    );
    wait_until("the worker of the allocation", || {
        up(&cluster, "allocated").is_some()
    });
    let worker = up(&cluster, "allocated").expect("it is up");
    let job = GatedJob::submit(&folder, &cluster, "gated", "long", 1, 2);
    let maps = ["m_0000", "m_0001"];
    let there =
        maps.map(|map| job.until(&format!("{map}.1"), "running")["worker"] == worker.as_str());
    let (taken, stays) = if there[0] {
        (maps[0], maps[1])
    } else {
        (maps[1], maps[0])
    };
    assert_ne!(there[0], there[1], "a map on each");
    // An urgent allocation takes the node.
    let urgent = slurm.submit(
        &["-p", "high", "--exclusive", "--output=/dev/null"],
        "sleep 600",
    );
    wait_until("the end of the preempted worker", || {
        up(&cluster, "allocated").is_none()
    });
    job.open(stays);
    let goes_on = job.until(&format!("{taken}.2"), "running");
    assert_ne!(goes_on["worker"], worker.as_str(), "it goes on elsewhere");
    wait_until("the node changes hands", || {
        let asked = ["--noheader", "--format=%i %t"];
        let said = run(&mut slurm.command("squeue", &asked)).succeeded().stdout;
        let has = |job: &str, state: &str| {
            said.lines()
                .any(|line| line.trim() == format!("{job} {state}"))
        };
        has(&urgent, "R") && has(&allocation, "PD")
    });
    run(&mut slurm.command("scancel", &[&allocation, &urgent])).succeeded();
    job.ends_as_undisturbed();
    for (name, times) in [
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
        ("NUM_KILLED_MAPS", 0),
    ] {
        assert_eq!(counter(&job.output(), name), times, "{name}");
    }
    let of = |name| counter(&job.output(), name);
    let lost = of("WORK_LOST_MILLIS");
    let work = of("MILLIS_MAPS") + of("MILLIS_REDUCES");
    assert!(lost * 100 < work, "{lost} ms of {work} ms are lost");
    let said = fs::read_to_string(log).expect("a log");
    assert!(
        said.contains("stopping (SIGTERM): attempts save their work"),
        "{said}"
    );
    assert!(
        said.contains("released by the coordinator; leaving"),
        "{said}"
    );
}

/// A running `nap scale slurm`, ended with the test.
struct Scaling(Child);

impl Scaling {
    fn start(folder: &Folder, cluster: &OwnCluster, slurm: &Slurm, arguments: &[&str]) -> Scaling {
        let log = File::create(folder.path("scale.log")).expect("a log");
        let mut command = cluster.nap();
        command
            .env("SLURM_CONF", slurm.configuration())
            .env("TMPDIR", folder.path("allocated"));
        command
            .args(["scale", "slurm", "--every", "500ms", "--idle", "1s"])
            .args(arguments);
        Scaling(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("nap scale"),
        )
    }
}

impl Drop for Scaling {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn slurm_scaling_follows_demand() {
    let folder = Folder::new();
    let Some(slurm) = slurm(&folder) else { return };
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    fs::create_dir_all(folder.path("allocated")).expect("a directory");
    let _scaling = Scaling::start(
        &folder,
        &cluster,
        &slurm,
        &["--max", "2", "--", "-p", "low", "--output=/dev/null"],
    );
    let job = GatedJob::submit(&folder, &cluster, "gated", "wide", 1, 3);
    // One map runs on the existing worker; the other two slots need a worker each.
    for map in ["m_0000.1", "m_0001.1", "m_0002.1"] {
        job.until(map, "running");
    }
    assert_eq!(slurm.states(), ["R", "R"]);
    assert!(up(&cluster, "nap-worker-").is_some());
    job.ends_as_undisturbed();
    wait_until("idle workers leave", || slurm.states().is_empty());
    assert_eq!(up(&cluster, "nap-worker-"), None);
}

#[test]
fn pending_slurm_workers_are_cancelled_without_demand() {
    let folder = Folder::new();
    let Some(slurm) = slurm(&folder) else { return };
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let asks = [
        "--max",
        "5",
        "--",
        "-p",
        "low",
        "--output=/dev/null",
        "--begin=now+1hour",
    ];
    let _scaling = Scaling::start(&folder, &cluster, &slurm, &asks);
    let job = GatedJob::submit(&folder, &cluster, "gated", "wide", 1, 4);
    job.until("m_0000.1", "running");
    wait_until("a worker for each slot that is wanted", || {
        slurm.states() == ["PD"; 3]
    });
    // Later rounds submit no more: the pending workers are enough.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(slurm.states(), ["PD"; 3]);
    for map in ["m_0000", "m_0001", "m_0002", "m_0003"] {
        job.open(map);
    }
    wait_until("nothing is pending", || slurm.states().is_empty());
    job.ends_as_undisturbed();
}
