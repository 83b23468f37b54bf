//! The process between the submitter and Hadoop: it runs each job as a Hadoop Streaming job and reports its
//! events.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use napreduce_protocol::printing::print_error;
use serde_json::json;

use super::bridge::{Side, command_line, shipped_name};
use super::progress::{ClientLine, done, parse};
use super::request::{Failure, Shipment, read};
use super::typed_bytes::PARTITIONS_MAX;
use super::{Installed, JAR, MARKER};
use crate::forms::{
    ENGINE_FORMAT, EngineDescription, EngineEvent, GuestReport, JobRequest, PhaseCounts,
};

const TICK: Duration = Duration::from_millis(100);
/// Lines of Hadoop's output quoted when a job fails without an error of a task.
const QUOTED_LINES: usize = 30;
/// Names in the directory for parts.
const TASKS: &str = "napreduce-tasks";
const REPORTS: &str = "napreduce-reports";

/// Runs jobs until the submitter ends.
pub(super) fn main(installed: &Installed, directory: &Path) -> i32 {
    let ran = read::<EngineDescription>(&directory.join("engine.json")).and_then(|engine| {
        if engine.format != ENGINE_FORMAT {
            return Err(format!(
                "this program reads {ENGINE_FORMAT}, but received {}",
                engine.format
            ));
        }
        let mut number = 1;
        while is_wanted(&engine, directory) {
            let path = directory.join(format!("jobs/{number}.json"));
            if !path.exists() {
                thread::sleep(TICK / 4);
                continue;
            }
            let request: JobRequest = read(&path)?;
            Submission {
                installed,
                directory,
                engine: &engine,
                request: &request,
            }
            .run();
            number += 1;
        }
        Ok(())
    });
    match ran {
        Ok(()) => 0,
        Err(why) => {
            print_error(&why);
            1
        }
    }
}

/// Returns whether the submitter still runs and may send more jobs.
fn is_wanted(engine: &EngineDescription, directory: &Path) -> bool {
    Path::new(&format!("/proc/{}", engine.submitter)).exists()
        && directory.is_dir()
        && !directory.join("end").exists()
}

/// One job.
struct Submission<'a> {
    installed: &'a Installed,
    directory: &'a Path,
    engine: &'a EngineDescription,
    request: &'a JobRequest,
}

/// The result of Hadoop's client and its output.
struct ClientResult {
    status: ExitStatus,
    last_lines: Vec<String>,
    failed_maps: u64,
    failed_reduces: u64,
}

/// Writes an event; errors are ignored, because the submitter may have ended.
fn send(event: &EngineEvent) {
    let mut out = io::stdout().lock();
    let _ = event.write(&mut out).and_then(|()| out.flush());
}

impl Submission<'_> {
    /// Runs the job and reports its end.
    fn run(&self) {
        let number = self.request.number;
        let ended = self.prepare().and_then(|command| self.follow(command));
        match ended.and_then(|result| Ok((self.reports(&result)?, result))) {
            Ok((reports, result)) => {
                for report in reports {
                    send(&EngineEvent::Report {
                        number,
                        report: Box::new(report),
                    });
                }
                let ClientResult {
                    failed_maps,
                    failed_reduces,
                    ..
                } = result;
                send(&EngineEvent::Done {
                    number,
                    failed_maps,
                    failed_reduces,
                });
            }
            Err(why) => {
                let (task, reason) = match Failure::worst(&self.request.parts) {
                    Some(Failure { task, reason, .. }) => (Some(task), reason),
                    None => (None, why),
                };
                send(&EngineEvent::Failed {
                    number,
                    task,
                    reason,
                });
            }
        }
    }

    /// Writes the files of the tasks; returns the command that runs them.
    fn prepare(&self) -> Result<Command, String> {
        let JobRequest {
            format,
            number,
            reduces,
            parts,
            inputs,
            program,
            plan,
            files,
            ..
        } = self.request;
        if format != ENGINE_FORMAT {
            return Err(format!(
                "this program reads {ENGINE_FORMAT}, but received {format}"
            ));
        }
        if *reduces > PARTITIONS_MAX {
            return Err(format!(
                "too many reduces for Hadoop: {reduces} (limit {PARTITIONS_MAX}); pass a smaller --reduces"
            ));
        }
        let mut lines = String::new();
        if inputs.is_empty() {
            // A task that only wakes the reduces.
            lines.push_str("[null,null]\n");
        }
        for (task, input) in inputs.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{}", json!([task, input]));
        }
        let tasks = parts.join(TASKS);
        let unwritten = |error: io::Error| format!("cannot write {}: {error}", tasks.display());
        fs::create_dir_all(&tasks)
            .and_then(|()| Failure::place(parts))
            .map_err(unwritten)?;
        fs::write(tasks.join("tasks"), lines).map_err(unwritten)?;
        let mut shipped = vec![program.clone(), plan.clone()];
        let mut named = Vec::new();
        for file in files {
            named.push((file.name.clone(), shipped_name(&file.path)?));
            shipped.push(file.path.clone());
        }
        let shipment = Shipment {
            job: self.request.job.clone(),
            reduces: *reduces,
            parts: parts.clone(),
            program: shipped_name(program)?,
            plan: shipped_name(plan)?,
            files: named,
        };
        let path = self
            .directory
            .join(format!("napreduce-shipment-{number}.json"));
        let text = serde_json::to_vec(&shipment)
            .map_err(|error| format!("cannot encode the job for Hadoop: {error}"))?;
        fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        shipped.push(path.clone());
        Ok(self.command(&shipment.program, &shipped_name(&path)?, &shipped))
    }

    fn command(&self, program: &str, shipment: &str, shipped: &[PathBuf]) -> Command {
        let JobRequest { reduces, parts, .. } = self.request;
        let mut command = Command::new(&self.installed.command);
        command.arg("jar").arg(&self.installed.jar);
        for (key, value) in self.settings() {
            command.arg("-D").arg(format!("{key}={value}"));
        }
        let uris: Vec<String> = shipped.iter().map(|path| uri(path)).collect();
        command.arg("-files").arg(uris.join(","));
        command.args(["-numReduceTasks", &reduces.to_string()]);
        command
            .arg("-input")
            .arg(uri(&parts.join(TASKS).join("tasks")));
        command.args([
            "-inputformat",
            "org.apache.hadoop.mapred.lib.NLineInputFormat",
        ]);
        command.arg("-output").arg(uri(&parts.join(REPORTS)));
        command
            .arg("-mapper")
            .arg(command_line(program, MARKER, Side::Map, shipment));
        if *reduces > 0 {
            command
                .arg("-reducer")
                .arg(command_line(program, MARKER, Side::Reduce, shipment));
        }
        command
    }

    /// Returns further Hadoop settings; those of the user take precedence.
    fn settings(&self) -> BTreeMap<String, String> {
        let JobRequest {
            name,
            attempts_max,
            reduces,
            ..
        } = self.request;
        // Frames from maps to reduces, text for everything else.
        let output = if *reduces > 0 { "typedbytes" } else { "text" };
        let own = [
            ("mapreduce.job.name", name.clone()),
            ("mapreduce.map.maxattempts", attempts_max.to_string()),
            ("mapreduce.reduce.maxattempts", attempts_max.to_string()),
            (
                "mapreduce.input.lineinputformat.linespermap",
                "1".to_owned(),
            ),
            (
                "mapreduce.output.fileoutputformat.compress",
                "false".to_owned(),
            ),
            ("stream.map.output", output.to_owned()),
            ("stream.reduce.input", output.to_owned()),
            ("stream.reduce.output", "text".to_owned()),
        ];
        let mut settings: BTreeMap<String, String> = own
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let given = self
            .engine
            .settings
            .iter()
            .filter(|(key, _)| key.as_str() != JAR);
        settings.extend(given.map(|(key, value)| (key.clone(), value.clone())));
        settings
    }

    /// Runs the command to its end, or kills the job when it is no longer needed.
    fn follow(&self, mut command: Command) -> Result<ClientResult, String> {
        let shown = self.installed.command.display();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {shown}: {error}"))?;
        let (sender, lines) = channel();
        let output = child.stdout.take();
        let errors = child.stderr.take();
        let readers = [
            output.map(|output| listen(output, sender.clone())),
            errors.map(|errors| listen(errors, sender)),
        ];
        let mut output_so_far = ClientOutput::default();
        let status = loop {
            output_so_far.take(&lines, self.request);
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => thread::sleep(TICK),
                Err(error) => return Err(format!("cannot wait for {shown}: {error}")),
            }
            if let Some(why) = self.kill_reason() {
                self.kill(&mut child, output_so_far.job.as_deref());
                return Err(why);
            }
        };
        for reader in readers.into_iter().flatten() {
            // The lines are already in the channel.
            let _ = reader.join();
        }
        output_so_far.take(&lines, self.request);
        let ClientOutput {
            last_lines,
            failed_maps,
            failed_reduces,
            ..
        } = output_so_far;
        Ok(ClientResult {
            status,
            last_lines,
            failed_maps,
            failed_reduces,
        })
    }

    /// Returns the reason to kill a running job, if any.
    fn kill_reason(&self) -> Option<String> {
        let cancel = self
            .directory
            .join(format!("jobs/{}.cancel", self.request.number));
        if cancel.exists() || !is_wanted(self.engine, self.directory) {
            return Some("the job was cancelled".to_owned());
        }
        Failure::worst(&self.request.parts)
            .filter(Failure::is_fatal)
            .map(|failure| failure.reason)
    }

    /// Kills the job on the cluster, if it is known yet, and its client.
    fn kill(&self, child: &mut Child, job: Option<&str>) {
        if let Some(job) = job {
            let mut kill = Command::new(&self.installed.command);
            kill.args(["job", "-kill", job])
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            if let Err(error) = kill.status() {
                print_error(format_args!("cannot kill {job}: {error}"));
            }
        }
        // It may have ended with its job.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Returns the reports of the tasks that wrote parts: the output of Hadoop's job, one per line.
    fn reports(&self, result: &ClientResult) -> Result<Vec<GuestReport>, String> {
        if !result.status.success() {
            return Err(format!(
                "Hadoop: {}\n{}",
                result.status,
                result.last_lines.join("\n")
            ));
        }
        let folder = self.request.parts.join(REPORTS);
        let unread = |error: io::Error| format!("cannot read {}: {error}", folder.display());
        let mut reports = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            if !entry.file_name().as_bytes().starts_with(b"part-") {
                continue;
            }
            let text = fs::read_to_string(entry.path()).map_err(unread)?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let report = GuestReport::from_json(line.as_bytes());
                reports.push(report.map_err(|error| format!("invalid report {line:?}: {error}"))?);
            }
        }
        Ok(reports)
    }
}

/// The output of a client so far.
#[derive(Default)]
struct ClientOutput {
    job: Option<String>,
    last_lines: Vec<String>,
    failed_maps: u64,
    failed_reduces: u64,
}

impl ClientOutput {
    fn take(&mut self, lines: &Receiver<String>, request: &JobRequest) {
        for line in lines.try_iter() {
            match parse(&line) {
                Some(ClientLine::Job(id)) => self.job = Some(id),
                Some(ClientLine::FailedMaps(count)) => self.failed_maps = count,
                Some(ClientLine::FailedReduces(count)) => self.failed_reduces = count,
                Some(ClientLine::Percent { maps, reduces }) => {
                    let count = |tasks, percent| PhaseCounts {
                        done: done(tasks, percent),
                        running: 0,
                    };
                    let all = u32::try_from(request.inputs.len()).unwrap_or(u32::MAX);
                    let maps = count(all, maps);
                    let reduces = count(request.reduces, reduces);
                    send(&EngineEvent::Progress {
                        number: request.number,
                        maps,
                        reduces,
                    });
                }
                None => {}
            }
            self.last_lines.push(line);
            self.last_lines
                .drain(..self.last_lines.len().saturating_sub(QUOTED_LINES));
        }
    }
}

/// Reads lines to the end and copies them to the engine's log.
fn listen(from: impl Read + Send + 'static, sender: Sender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            print_error(&line);
            // The receiver has killed the job.
            let _ = sender.send(line);
        }
    })
}

/// Returns a path as a Hadoop URI of the local file system.
fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                uri.push(byte as char)
            }
            // Writing to a string cannot fail.
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(reduces: u32) -> JobRequest {
        JobRequest {
            format: ENGINE_FORMAT.to_owned(),
            number: 2,
            job: "job_0002".to_owned(),
            name: "count".to_owned(),
            program: "/e/napreduce-program-ab".into(),
            plan: "/e/napreduce-plan-2.json".into(),
            files: Vec::new(),
            inputs: vec![Some("in,put".to_owned()), None],
            reduces,
            attempts_max: 4,
            parts: "/shared/o ut".into(),
        }
    }

    fn words(reduces: u32, settings: &[(&str, &str)]) -> Vec<String> {
        let installed = Installed {
            command: "hadoop".into(),
            jar: "s.jar".into(),
        };
        let settings = settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let format = ENGINE_FORMAT.to_owned();
        let name = "count".to_owned();
        let engine = EngineDescription {
            format,
            submitter: 1,
            name,
            settings,
        };
        let request = request(reduces);
        let job = Submission {
            installed: &installed,
            directory: Path::new("/e"),
            engine: &engine,
            request: &request,
        };
        let command = job.command("p", "s.json", &["/e/p".into(), "/e/a,b".into()]);
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn job_arguments_are_those_of_hadoop_streaming() {
        let found = words(3, &[("mapreduce.map.maxattempts", "9"), (JAR, "x")]);
        assert_eq!(found[..2], ["jar", "s.jar"]);
        for (first, second) in [
            ("-D", "mapreduce.map.maxattempts=9"),
            ("-D", "mapreduce.reduce.maxattempts=4"),
            ("-D", "stream.map.output=typedbytes"),
            ("-files", "file:///e/p,file:///e/a%2Cb"),
            ("-numReduceTasks", "3"),
            ("-input", "file:///shared/o%20ut/napreduce-tasks/tasks"),
            ("-mapper", "./p --napreduce-hadoop map s.json"),
            ("-reducer", "./p --napreduce-hadoop reduce s.json"),
        ] {
            assert!(
                found.windows(2).any(|two| two == [first, second]),
                "{first} {second}: {found:?}"
            );
        }
        assert!(
            !found.iter().any(|word| word.contains(JAR)),
            "that is for us: {found:?}"
        );
    }

    #[test]
    fn map_only_job_writes_reports_as_text() {
        let found = words(0, &[]);
        assert!(
            found.contains(&"stream.map.output=text".to_owned()),
            "{found:?}"
        );
        assert!(!found.contains(&"-reducer".to_owned()), "{found:?}");
    }
}
