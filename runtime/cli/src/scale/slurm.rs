//! Runs sbatch, squeue and scancel of Slurm, and writes the batch script of a worker.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use napreduce_cluster::ClusterPlace;

use super::plan::{BatchJob, BatchPhase};
use crate::cluster::ClusterArguments;

/// The content of the batch script.
#[derive(Debug, Clone)]
pub struct WorkerScript {
    pub program: PathBuf,
    /// The name of the jobs; a worker has it with the number of its job.
    pub name: String,
    /// The flags that name the cluster.
    pub cluster: Vec<String>,
    /// The flags for leaving.
    pub leave: Vec<String>,
}

pub struct Slurm {
    script: WorkerScript,
    pub arguments: Vec<String>,
}

/// Returns the flags with which a worker on another node finds the cluster.
pub fn cluster_line(place: &ClusterPlace, arguments: &ClusterArguments) -> Result<Vec<String>> {
    let absolute = |path: PathBuf| {
        let path = std::path::absolute(&path)
            .with_context(|| format!("cannot make {} absolute", path.display()));
        path.and_then(|path| {
            path.into_os_string()
                .into_string()
                .map_err(|path| anyhow!("{path:?}: not UTF-8; rename it"))
        })
    };
    Ok(match place {
        ClusterPlace::Directory(directory) => {
            vec!["--dir".into(), absolute(directory.path().to_owned())?]
        }
        ClusterPlace::Address { address, .. } => {
            let mut line = vec!["--coordinator".into(), address.clone()];
            let in_file = arguments.configuration()?.client.secret_file;
            if let Some(secret) = arguments.secret_file.clone().or(in_file) {
                line.extend(["--secret-file".into(), absolute(secret)?]);
            }
            line
        }
    })
}

/// Parses a job name that fits into listings and file names.
pub fn job_name(name: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !name.is_empty() && name.len() <= 100 && name.chars().all(fits) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "invalid job name {name:?}: expected 1 to 100 letters, digits, - _ or ., such as nap-worker"
        ))
    }
}

impl Slurm {
    /// Checks that Slurm's commands exist.
    ///
    /// # Errors
    /// If sbatch cannot be run.
    pub fn new(script: WorkerScript, arguments: Vec<String>) -> Result<Slurm> {
        let slurm = Slurm { script, arguments };
        ask(Command::new("sbatch").arg("--version"))?;
        Ok(slurm)
    }

    /// Returns the name of the worker of a job.
    pub fn worker_of(&self, job: &str) -> String {
        format!("{}-{job}", self.script.name)
    }

    pub fn is_ours(&self, worker: &str) -> bool {
        let number = worker
            .strip_prefix(&self.script.name)
            .and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.bytes().all(|letter| letter.is_ascii_digit()))
    }

    /// Lists our unfinished jobs, oldest first.
    pub fn jobs(&self) -> Result<Vec<BatchJob>> {
        let mut asking = Command::new("squeue");
        asking.args([
            "--me",
            "--noheader",
            "--states=all",
            "--sort=i",
            "--format=%A %t",
            "--name",
            &self.script.name,
        ]);
        let printed = ask(&mut asking)?;
        let jobs = read_jobs(&printed)?;
        Ok(jobs
            .into_iter()
            .map(|(id, phase)| BatchJob {
                worker: self.worker_of(&id),
                id,
                phase,
            })
            .collect())
    }

    /// Submits one worker; returns the number of its job.
    pub fn submit(&self) -> Result<String> {
        let script = self.script.text()?;
        let mut line = Command::new("sbatch");
        // SIGTERM a minute before the time limit; the arguments of the user come later and win.
        line.args(["--parsable", "--signal=B:TERM@60"])
            .args(&self.arguments);
        line.args(["--job-name", &self.script.name]);
        line.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = line.spawn().context("cannot run sbatch")?;
        if let Some(mut stdin) = running.stdin.take() {
            // An sbatch that rejects its arguments does not read; its error is reported below.
            let _ = stdin.write_all(script.as_bytes());
        }
        let printed = answer(
            "sbatch",
            running
                .wait_with_output()
                .context("cannot wait for sbatch")?,
        )?;
        let number = printed
            .trim()
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned();
        if !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit()) {
            Ok(number)
        } else {
            bail!(
                "sbatch printed {:?} instead of a job number",
                printed.trim()
            )
        }
    }

    pub fn cancel(&self, jobs: &[String]) -> Result<()> {
        // Only pending jobs: one that just got its node is drained when idle.
        ask(Command::new("scancel").arg("--state=PENDING").args(jobs)).map(drop)
    }
}

impl WorkerScript {
    /// Returns the script. It executes the worker in place of the shell, so that signals reach the worker, in a
    /// directory local to the node.
    fn text(&self) -> Result<String> {
        let program = self
            .program
            .to_str()
            .with_context(|| format!("{:?}: not UTF-8; rename it", self.program))?;
        let mut text = String::from("#!/bin/sh\nexec");
        for word in [program, "worker"]
            .into_iter()
            .chain(self.cluster.iter().map(String::as_str))
        {
            let _ = write!(text, " {}", quoted(word));
        }
        for word in &self.leave {
            let _ = write!(text, " {}", quoted(word));
        }
        let name = format!("{}-$SLURM_JOB_ID", self.name);
        let _ = write!(
            text,
            " --name \"{name}\" --directory \"${{TMPDIR:-/tmp}}/{name}\""
        );
        // Bind to all addresses: the network of the coordinator decides under which one others reach it.
        text.push_str(" --bind 0.0.0.0:0");
        text.push_str(
            " --map-slots \"${SLURM_CPUS_ON_NODE:-1}\" --reduce-slots \"${SLURM_CPUS_ON_NODE:-1}\"\n",
        );
        Ok(text)
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the processors of a worker by the last `-c` in any of its forms, as sbatch does.
pub fn processors(arguments: &[String]) -> u32 {
    let mut found = 1;
    for (at, argument) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).map(String::as_str);
        let value = match argument.as_str() {
            "-c" | "--cpus-per-task" => next(),
            other => other
                .strip_prefix("--cpus-per-task=")
                .or_else(|| other.strip_prefix("-c")),
        };
        found = value.and_then(|value| value.parse().ok()).unwrap_or(found);
    }
    found.max(1)
}

/// Parses lines of a job number and a short state; skips ended jobs.
fn read_jobs(listing: &str) -> Result<Vec<(String, BatchPhase)>> {
    let mut jobs = Vec::new();
    for line in listing
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[id, state] = &words[..] else {
            bail!("squeue printed {line:?} instead of a job and its state")
        };
        let phase = match state {
            "PD" | "RH" | "RQ" | "RF" | "RD" | "SE" => BatchPhase::Pending,
            "R" | "CF" | "S" | "ST" | "SO" | "RS" | "SI" => BatchPhase::Running,
            "CG" | "PR" | "RV" => BatchPhase::Ending,
            // BF, CA, CD, DL, F, NF, OOM, TO: ended, and still listed.
            _ => continue,
        };
        jobs.push((id.to_owned(), phase));
    }
    Ok(jobs)
}

fn ask(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output
        .with_context(|| format!("cannot run {name}; run this on a host with Slurm's commands"))?;
    answer(&name, output)
}

fn answer(name: &str, output: std::process::Output) -> Result<String> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    bail!("{name} failed ({}): {}", output.status, why.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn processors_are_read_from_sbatch_arguments() {
        for (arguments, expected) in [
            ("", 1),
            ("-p batch -c 8", 8),
            ("-c8 -t 1:00", 8),
            ("--cpus-per-task=4", 4),
            ("--cpus-per-task 4 -c 2", 2),
            ("--comment=-c9", 1),
            ("-c many", 1),
            ("-c", 1),
            ("-c 0", 1),
        ] {
            assert_eq!(processors(&words(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn squeue_output_is_read_with_states() {
        let jobs = read_jobs("12 PD\n 13 R\n14 CG\n15 CD\n16 CF\n\n").expect("as squeue prints it");
        let expected = [
            ("12", BatchPhase::Pending),
            ("13", BatchPhase::Running),
            ("14", BatchPhase::Ending),
            ("16", BatchPhase::Running),
        ];
        assert_eq!(jobs, expected.map(|(id, phase)| (id.to_owned(), phase)));
        let error = read_jobs("slurm_load_jobs error: Unable to contact")
            .expect_err("no job")
            .to_string();
        assert!(error.contains("instead of a job and its state"), "{error}");
    }

    #[test]
    fn script_executes_worker_with_quoted_arguments() {
        let script = WorkerScript {
            program: "/opt/nap tools/nap".into(),
            name: "nap-worker".into(),
            cluster: words("--coordinator head:7000 --secret-file /home/o'hara/secret"),
            leave: words("--grace 50000ms"),
        };
        assert_eq!(
            script.text().expect("text"),
            "#!/bin/sh\nexec '/opt/nap tools/nap' 'worker' '--coordinator' 'head:7000' '--secret-file' \
             '/home/o'\\''hara/secret' '--grace' '50000ms' --name \"nap-worker-$SLURM_JOB_ID\" --directory \
             \"${TMPDIR:-/tmp}/nap-worker-$SLURM_JOB_ID\" --bind 0.0.0.0:0 --map-slots \"${SLURM_CPUS_ON_NODE:-1}\" \
             --reduce-slots \"${SLURM_CPUS_ON_NODE:-1}\"\n"
        );
        assert!(
            job_name("nap worker").is_err()
                && job_name("").is_err()
                && job_name("nap-worker.2").is_ok()
        );
    }
}
