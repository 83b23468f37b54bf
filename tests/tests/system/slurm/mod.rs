//! Workers in allocations of a real Slurm: a preempted allocation, and scaling by demand with the scripts of
//! `runtime/cli/slurm`. Needs root and Debian's `slurm-wlm` and `munge`; skipped without them, unless
//! `NAPREDUCE_REQUIRE` lists `slurm`. One test runs the scripts with stand-ins for Slurm's commands.

mod cluster;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cluster::Slurm;
use napreduce_tests::{Folder, GatedJob, OwnCluster, counter, program, run, skipped, wait_until};

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

/// Returns the path of a script for Slurm.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../runtime/cli/slurm")
        .join(name)
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a command of a script for this cluster, with `nap` and these folders of programs first in `PATH`.
fn for_cluster(folder: &Folder, cluster: &OwnCluster, program: &str, first: &Path) -> Command {
    let nap = program_path("nap");
    let programs = nap.parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command
        .env(
            "PATH",
            format!("{}:{}:{path}", first.display(), programs.display()),
        )
        .env("NAPREDUCE_DIR", cluster.directory())
        .env("TMPDIR", folder.path("allocated"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn program_path(name: &str) -> PathBuf {
    program(name).get_program().into()
}

/// Starts `scale.py` with short times. A worker has one slot.
fn start_scaling(mut python: Command, folder: &Folder, most: &str, sbatch: &[&str]) -> Running {
    let log = File::create(folder.path("scale.log")).expect("a log");
    python
        .env("EVERY", "0.5")
        .env("IDLE", "1")
        .arg(script("scale.py"))
        .args([most, "1"])
        .args(sbatch)
        .arg(script("worker.sh"))
        .stderr(log);
    Running(python.spawn().expect("python3 runs"))
}

/// Stand-ins for the commands of Slurm. `jobs` in their folder lists the jobs.
const STAND_INS: [(&str, &str); 3] = [
    (
        "sbatch",
        "number=$(cat last) && number=$((number + 1)) && echo $number > last && echo \"$number PD\" >> jobs\n\
         echo \"$@\" >> submitted",
    ),
    ("squeue", "cat jobs"),
    ("scancel", "for job; do sed -i \"/^$job PD/d\" jobs; done"),
];

#[test]
fn scaling_script_follows_demand() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|ended| ended.status.success()) {
        skipped("python", "there is no python3");
        return;
    }
    let folder = Folder::new();
    let commands = folder.path("slurm");
    fs::create_dir_all(&commands).expect("a folder");
    for (name, text) in STAND_INS {
        let text = format!("#!/bin/sh\ncd {} || exit 1\n{text}\n", commands.display());
        let path = folder.write(&format!("slurm/{name}"), text);
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
    }
    folder.write("slurm/last", "0\n");
    folder.write("slurm/jobs", "100 R\n");
    let jobs = || fs::read_to_string(folder.path("slurm/jobs")).expect("the jobs");
    fs::create_dir_all(folder.path("allocated")).expect("a folder");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut worker = for_cluster(&folder, &cluster, "sh", &commands);
    worker
        .arg(script("worker.sh"))
        .env("SLURM_JOB_ID", "100")
        .env("SLURM_CPUS_ON_NODE", "1")
        .stderr(Stdio::null());
    let mut worker = Running(worker.spawn().expect("sh runs"));
    wait_until("the worker of job 100", || {
        up(&cluster, "nap-worker-100").is_some()
    });
    // Two maps run; three wait, but one more worker than two would exceed the maximum.
    let job = GatedJob::submit(&folder, &cluster, "gated", "wide", 1, 5);
    let python = for_cluster(&folder, &cluster, "python3", &commands);
    let _scaling = start_scaling(python, &folder, "3", &["-p", "low"]);
    wait_until("two more workers", || jobs() == "100 R\n1 PD\n2 PD\n");
    job.ends_as_undisturbed();
    wait_until("nothing is pending", || jobs() == "100 R\n");
    wait_until("the idle worker is drained", || {
        let ended = worker.0.try_wait().expect("its status");
        ended.is_some_and(|status| status.success())
    });
    let submitted = fs::read_to_string(folder.path("slurm/submitted")).expect("the submissions");
    let expected = format!(
        "--job-name=nap-worker -p low {}\n",
        script("worker.sh").display()
    );
    assert_eq!(submitted, expected.repeat(2));
}

fn scaling_with(
    slurm: &Slurm,
    folder: &Folder,
    cluster: &OwnCluster,
    most: &str,
    sbatch: &[&str],
) -> Running {
    let mut python = for_cluster(folder, cluster, "python3", folder.root());
    python.env("SLURM_CONF", slurm.configuration());
    start_scaling(python, folder, most, sbatch)
}

#[test]
fn slurm_scaling_follows_demand() {
    let folder = Folder::new();
    let Some(slurm) = slurm(&folder) else { return };
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    fs::create_dir_all(folder.path("allocated")).expect("a directory");
    let sbatch = ["-p", "low", "-c", "1", "--output=/dev/null"];
    let _scaling = scaling_with(&slurm, &folder, &cluster, "2", &sbatch);
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
    let sbatch = [
        "-p",
        "low",
        "-c",
        "1",
        "--output=/dev/null",
        "--begin=now+1hour",
    ];
    let _scaling = scaling_with(&slurm, &folder, &cluster, "5", &sbatch);
    let job = GatedJob::submit(&folder, &cluster, "gated", "wide", 1, 4);
    job.until("m_0000.1", "running");
    wait_until("a worker for each slot that is wanted", || {
        slurm.states() == ["PD"; 3]
    });
    for map in ["m_0000", "m_0001", "m_0002", "m_0003"] {
        job.open(map);
    }
    wait_until("nothing is pending", || slurm.states().is_empty());
    job.ends_as_undisturbed();
}
