//! A Slurm cluster on this machine: daemons in the foreground, one node, and two partitions, one of which
//! preempts the other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use napreduce_tests::{Folder, free_address, run, wait_until};

/// Seconds between SIGTERM and SIGKILL.
const KILL_WAIT: u32 = 30;

pub struct Slurm {
    configuration: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts it.
    ///
    /// # Errors
    /// If a program or root is missing.
    pub fn start(folder: &Folder) -> Result<Slurm, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("the daemons of Slurm want root".to_owned());
        }
        for (program, package) in [
            ("munged", "munge"),
            ("slurmctld", "slurm-wlm"),
            ("slurmd", "slurm-wlm"),
        ] {
            let found = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let old = Command::new(program)
                .arg("-V")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if found.is_err() && old.is_err() {
                return Err(format!("no {program}; install {package}"));
            }
        }
        let root = folder.path("slurm");
        for name in ["state", "spool", "munge"] {
            fs::create_dir_all(root.join(name)).expect("a directory");
        }
        let mut slurm = Slurm {
            configuration: root.join("slurm.conf"),
            daemons: Vec::new(),
        };
        slurm.start_munge(&root);
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim().split('.').next().unwrap_or_default().to_owned();
        fs::write(&slurm.configuration, configuration(&root, &host)).expect("a configuration");
        let file = slurm.configuration.display().to_string();
        slurm.daemon(&root, "slurmctld", &["-D", "-f", &file]);
        slurm.daemon(&root, "slurmd", &["-D", "-f", &file, "-N", &host]);
        wait_until("an idle node", || {
            let listed = run(&mut slurm.command("sinfo", &["--noheader", "--format=%t"]));
            listed.status.success() && listed.stdout.lines().any(|state| state.trim() == "idle")
        });
        Ok(slurm)
    }

    /// Starts the authentication service of the daemons.
    fn start_munge(&mut self, root: &Path) {
        let key = root.join("munge/key");
        fs::write(&key, [7; 128]).expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("its mode");
        fs::set_permissions(root.join("munge"), fs::Permissions::from_mode(0o700))
            .expect("its mode");
        let at = |name: &str| root.join("munge").join(name).display().to_string();
        // Forced, since the parent folders are private.
        let flags = [
            "--force",
            "--foreground",
            "--key-file",
            &at("key"),
            "--socket",
            &at("socket"),
        ];
        let more = [
            "--pid-file",
            &at("pid"),
            "--seed-file",
            &at("seed"),
            "--log-file",
            &at("log"),
        ];
        self.daemon(root, "munged", &[flags, more].concat());
        wait_until("the socket of munged", || {
            root.join("munge/socket").exists()
        });
    }

    fn daemon(&mut self, root: &Path, program: &str, arguments: &[&str]) {
        let log = fs::File::create(root.join(format!("{program}.out"))).expect("a log");
        let mut command = self.command(program, arguments);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log);
        self.daemons.push(
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{program}: {error}")),
        );
    }

    /// Returns a Slurm command for this cluster.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env("SLURM_CONF", &self.configuration)
            .args(arguments);
        command
    }

    pub fn configuration(&self) -> &Path {
        &self.configuration
    }

    /// Submits a script; returns the job number.
    pub fn submit(&self, arguments: &[&str], script: &str) -> String {
        let mut command = self.command("sbatch", &[&["--parsable"], arguments].concat());
        let said = run(command.args(["--wrap", script])).succeeded().stdout;
        said.trim().to_owned()
    }

    /// Returns the states of all jobs that have not ended, such as `PD` and `R`.
    pub fn states(&self) -> Vec<String> {
        let said = run(&mut self.command("squeue", &["--noheader", "--format=%t"]))
            .succeeded()
            .stdout;
        said.lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Processes in an allocation are not children of this test.
        let _ = self
            .command(
                "scancel",
                &["--full", "--signal=KILL", "--state=RUNNING", "--user=root"],
            )
            .status();
        let _ = self.command("scancel", &["--user=root"]).status();
        let until = Instant::now() + Duration::from_secs(20);
        let ended = |slurm: &Slurm| {
            let listed = slurm.command("squeue", &["--noheader"]).output();
            listed.is_ok_and(|listed| listed.stdout.is_empty())
        };
        while !ended(self) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn configuration(root: &Path, host: &str) -> String {
    let at = root.display();
    let controller = free_address().port();
    let node = free_address().port();
    format!(
        "ClusterName=nap
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge/socket
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait={KILL_WAIT}
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES State=UP PriorityTier=1
PartitionName=high Nodes={host} State=UP PriorityTier=2 PreemptMode=OFF
"
    )
}
