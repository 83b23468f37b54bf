//! Runs a cluster for the tests of one process, and removes its folder when standard input closes, which also
//! happens when the tests are killed. Arguments are those of `nap up`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A cluster that is not ready after this time has failed.
const READY: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster keeper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn keep() -> Result<(), Box<dyn std::error::Error>> {
    let nap = std::env::current_exe()?.with_file_name("nap");
    let folder = tempfile::Builder::new()
        .prefix("napreduce-test-cluster-")
        .tempdir()?;
    let directory = folder.path().join("cluster");
    let log = folder.path().join("log");
    let output = File::create(&log)?;
    let mut cluster = Command::new(&nap)
        .arg("up")
        .arg("--dir")
        .arg(&directory)
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()?;
    let served = wait_until_ready(&log, &mut cluster).and_then(|()| {
        writeln!(io::stdout(), "{}", directory.display())?;
        // Standard input closes with the process that started this one.
        Ok(io::stdin().read_to_end(&mut Vec::new()).map(drop)?)
    });
    // The child is not reaped yet, so its process ID cannot have been reused.
    let ended = kill_process(Pid::from_child(&cluster), Signal::TERM).map_err(io::Error::from);
    let ended = ended
        .and_then(|()| cluster.wait())
        .map(drop)
        .map_err(Into::into);
    served
        .and(ended)
        .map_err(|error: Box<dyn std::error::Error>| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            format!("{error}; output of the cluster:\n{log}").into()
        })
}

/// Waits until `nap up` reports that the cluster is ready.
fn wait_until_ready(log: &Path, cluster: &mut Child) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    while !fs::read_to_string(log)?.contains("ready: ") {
        if let Some(ended) = cluster.try_wait()? {
            return Err(format!("nap up ended: {ended}").into());
        }
        if began.elapsed() > READY {
            return Err(format!("not ready after {READY:?}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
