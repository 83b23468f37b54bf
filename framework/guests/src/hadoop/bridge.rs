//! The command that Hadoop runs as a mapper or reducer: it runs a guest and converts between its frames and
//! Hadoop's records.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use napreduce_protocol::printing::print_error;

use super::request::{Failure, Shipment, read};
use super::typed_bytes::Frame;

/// Hadoop kills a task without progress for ten minutes.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);
/// Interval of checks whether Hadoop's task still runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Exit status of a terminated task.
const ENDED: i32 = 143;
/// Length of the end of a guest's output that is quoted on failure.
const QUOTED_BYTES: usize = 4 << 10;
const BUFFER_BYTES: usize = 256 << 10;

/// The mapper or the reducer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Map,
    Reduce,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Map => "map",
            Side::Reduce => "reduce",
        }
    }
}

/// An attempt, as described by Hadoop's environment variables.
struct Attempt {
    /// Hadoop's id, unique to the attempt.
    id: String,
    /// From 1.
    number: u32,
    /// The partition of a reduce.
    partition: Option<u32>,
}

/// Runs the guest of this task; returns its exit status.
pub(super) fn main(side: Side, shipment: &OsStr) -> i32 {
    let task = parent_id();
    thread::spawn(move || stay_with(task));
    let run = || -> Result<i32, String> {
        let shipment: Shipment = read(Path::new(shipment))?;
        let attempt = Attempt::of(|name| env::var(name).ok())?;
        match side {
            Side::Map => maps(&shipment, &attempt),
            Side::Reduce => {
                let task = attempt
                    .partition
                    .ok_or("Hadoop has not set mapreduce_task_partition")?;
                Bridge {
                    side,
                    shipment: &shipment,
                    attempt: &attempt,
                    task,
                    input_file: None,
                }
                .run()
            }
        }
    };
    run().unwrap_or_else(|why| {
        print_error(&why);
        1
    })
}

/// Reports progress to Hadoop's task, and exits when that is gone; the guest exits with this process.
fn stay_with(task: u32) -> ! {
    let mut reported = Instant::now();
    loop {
        thread::sleep(CHECK_INTERVAL);
        if parent_id() != task {
            process::exit(ENDED);
        }
        if reported.elapsed() >= PROGRESS_INTERVAL {
            reported = Instant::now();
            // The task may have just ended.
            let _ = writeln!(io::stderr(), "reporter:status:running");
        }
    }
}

/// Runs the map of each input line; Hadoop gives each task one.
fn maps(shipment: &Shipment, attempt: &Attempt) -> Result<i32, String> {
    for line in io::stdin().lines() {
        let line =
            line.map_err(|error| format!("cannot read the input line of this map: {error}"))?;
        // The text before a tab is the offset of the line in its file.
        let text = line
            .rsplit_once('\t')
            .map_or(line.as_str(), |(_, text)| text);
        let (task, input_file): (Option<u32>, Option<String>) = serde_json::from_str(text)
            .map_err(|error| format!("invalid input line {line:?}: {error}"))?;
        if let Some(task) = task {
            let status = Bridge {
                side: Side::Map,
                shipment,
                attempt,
                task,
                input_file,
            }
            .run()?;
            if status != 0 {
                return Ok(status);
            }
        }
        if task.unwrap_or(0) == 0 {
            wake(shipment.reduces).map_err(|error| format!("cannot write to Hadoop: {error}"))?;
        }
    }
    Ok(0)
}

/// Writes a record for every reduce: Hadoop discards the output of a reduce without input.
fn wake(reduces: u32) -> io::Result<()> {
    let mut hadoop = BufWriter::new(io::stdout().lock());
    for partition in 0..reduces {
        Frame::wake(partition).write_record(&mut hadoop, reduces)?;
    }
    hadoop.flush()
}

impl Attempt {
    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Attempt, String> {
        let either = |new: &str, old: &str| variable(new).or_else(|| variable(old));
        let id = either("mapreduce_task_attempt_id", "mapred_task_id")
            .ok_or("Hadoop has not set mapreduce_task_attempt_id")?;
        let last = id
            .rsplit('_')
            .next()
            .and_then(|number| number.parse::<u32>().ok());
        let number = last.and_then(|number| number.checked_add(1));
        let number = number.ok_or_else(|| format!("invalid attempt id {id}"))?;
        let partition = either("mapreduce_task_partition", "mapred_task_partition");
        Ok(Attempt {
            id,
            number,
            partition: partition.and_then(|text| text.parse().ok()),
        })
    }
}

/// The bridge to one guest.
struct Bridge<'a> {
    side: Side,
    shipment: &'a Shipment,
    attempt: &'a Attempt,
    task: u32,
    input_file: Option<String>,
}

impl Bridge<'_> {
    /// Returns the name of the task in napreduce.
    fn name(&self) -> String {
        format!(
            "{}_{}_{:04}",
            self.shipment.job,
            &self.side.word()[..1],
            self.task
        )
    }

    /// Runs the guest to its end; returns its status.
    fn run(&self) -> Result<i32, String> {
        let work = env::current_dir()
            .map_err(|error| format!("cannot find the current directory: {error}"))?;
        let work = work.join(format!("napreduce-work-{}", self.task));
        let ran = self.run_in(&work);
        // Hadoop removes the rest.
        let _ = fs::remove_dir_all(&work);
        let (status, reason) = match ran {
            Ok((0, _)) => return Ok(0),
            Ok((status, reason)) => (status, reason),
            // It is unknown whether a retry of the guest helps.
            Err(why) => {
                print_error(&why);
                (64, why)
            }
        };
        let failure = Failure {
            task: self.name(),
            status,
            reason,
        };
        if let Err(error) = failure.write(&self.shipment.parts, &self.attempt.id) {
            print_error(format_args!(
                "cannot write the failure to {}: {error}",
                self.shipment.parts.display()
            ));
        }
        Ok(status)
    }

    fn run_in(&self, work: &Path) -> Result<(i32, String), String> {
        let mut guest = self.start(work)?;
        let errors = guest
            .stderr
            .take()
            .ok_or("the guest has no standard error")?;
        let errors = thread::spawn(move || copy_errors(errors, io::stderr()));
        let end = self.move_records(&mut guest);
        if end.is_err() {
            // Its output is no longer read.
            let _ = guest.kill();
        }
        let status = guest
            .wait()
            .map_err(|error| format!("cannot wait for the guest: {error}"))?;
        let errors = errors.join().unwrap_or_default();
        match (status.code(), end) {
            // The guest's own error is the more specific one.
            (Some(0), Ok(GuestEnd::Reported)) => Ok((0, errors)),
            (Some(0), Ok(GuestEnd::NoReport)) => {
                Err(format!("{} ended without a report", self.name()))
            }
            (Some(0), Err(why)) => Err(why),
            (Some(status @ (64..=66 | 143)), _) if !errors.is_empty() => Ok((status, errors)),
            (_, Err(why)) => Err(why),
            (_, Ok(_)) => Ok((
                64,
                format!("ended by {status}; {errors}")
                    .trim_end_matches("; ")
                    .to_owned(),
            )),
        }
    }

    fn start(&self, work: &Path) -> Result<Child, String> {
        let Bridge {
            side,
            shipment,
            attempt,
            task,
            input_file,
        } = self;
        let here = env::current_dir()
            .map_err(|error| format!("cannot find the current directory: {error}"))?;
        let files = work.join("files");
        let unmade = |error| format!("cannot make {}: {error}", files.display());
        fs::create_dir_all(&files).map_err(unmade)?;
        for (name, shipped) in &shipment.files {
            symlink(here.join(shipped), files.join(name)).map_err(unmade)?;
        }
        let mut command = Command::new(here.join(&shipment.program));
        command
            .args(["--napreduce-guest", side.word(), "--plan"])
            .arg(here.join(&shipment.plan));
        command.args([
            "--task",
            &task.to_string(),
            "--attempt",
            &attempt.number.to_string(),
        ]);
        command.args(["--die-with", &process::id().to_string()]);
        command.arg("--scratch").arg(work.join("scratch"));
        let id = format!("{}.{}", self.name(), attempt.number);
        if *side == Side::Reduce || shipment.reduces == 0 {
            command.arg("--part").arg(shipment.parts.join(format!(
                "{}.{}",
                self.name(),
                attempt.id
            )));
        }
        command
            .env("NAPREDUCE_JOB_ID", &shipment.job)
            .env("NAPREDUCE_TASK_ID", self.name());
        command
            .env("NAPREDUCE_ATTEMPT_ID", id)
            .env("NAPREDUCE_FILES_DIR", &files);
        match input_file {
            Some(file) => command.env("NAPREDUCE_INPUT_FILE", file),
            None => command.env_remove("NAPREDUCE_INPUT_FILE"),
        };
        let input = if *side == Side::Reduce {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", shipment.program))
    }

    /// Copies the guest's output to Hadoop; for a reduce, first copies Hadoop's records to the guest.
    fn move_records(&self, guest: &mut Child) -> Result<GuestEnd, String> {
        let failed = |error: io::Error| format!("between Hadoop and {}: {error}", self.name());
        let output = guest
            .stdout
            .take()
            .ok_or("the guest has no standard output")?;
        let mut output = BufReader::with_capacity(BUFFER_BYTES, output);
        let mut hadoop = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        if let Some(input) = guest.stdin.take() {
            // A guest writes nothing before it has all frames.
            feed(input).map_err(failed)?;
            let mut report = Vec::new();
            output.read_to_end(&mut report).map_err(failed)?;
            if !report.is_empty() {
                write_report(&mut hadoop, &report).map_err(failed)?;
            }
            return hadoop.flush().map(|()| GuestEnd::Reported).map_err(failed);
        }
        let mut reported = false;
        while let Some(frame) = Frame::read(&mut output).map_err(failed)? {
            if reported {
                return Err(format!("{} sent a frame after its report", self.name()));
            }
            reported = frame.is_report();
            match self.shipment.reduces {
                0 => write_report(&mut hadoop, &frame.payload),
                reduces => frame.write_record(&mut hadoop, reduces),
            }
            .map_err(failed)?;
        }
        hadoop.flush().map_err(failed)?;
        Ok(if reported {
            GuestEnd::Reported
        } else {
            GuestEnd::NoReport
        })
    }
}

/// How a guest's output ended.
enum GuestEnd {
    Reported,
    /// A failing guest closes its output first and then needs time to report the reason.
    NoReport,
}

/// Copies Hadoop's records to a reduce. If the reduce exits early, its status contains the reason.
fn feed(guest: impl Write) -> io::Result<()> {
    let mut guest = BufWriter::with_capacity(BUFFER_BYTES, guest);
    let mut hadoop = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
    let fed = (|| {
        while let Some(frame) = Frame::read_record(&mut hadoop)? {
            if !frame.is_wake() {
                frame.write(&mut guest)?;
            }
        }
        guest.flush()
    })();
    match fed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        fed => fed,
    }
}

/// Writes a report as one line, which Hadoop keeps as the output of the task.
fn write_report(hadoop: &mut impl Write, report: &[u8]) -> io::Result<()> {
    let value: serde_json::Value = serde_json::from_slice(report)?;
    writeln!(hadoop, "{value}")
}

/// Copies the guest's messages to the log of its task; returns the last ones.
fn copy_errors(errors: impl Read, mut log: impl Write) -> String {
    let mut errors = BufReader::new(errors);
    let mut last = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match errors.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // Failing to write the log is not an error of the task.
        let _ = log.write_all(&line);
        last.extend_from_slice(&line);
        last.drain(..last.len().saturating_sub(QUOTED_BYTES));
    }
    String::from_utf8_lossy(&last).trim().to_owned()
}

/// Parses the argument after the marker.
pub(super) fn side_of(word: &OsStr) -> Option<Side> {
    [Side::Map, Side::Reduce]
        .into_iter()
        .find(|side| word == side.word())
}

/// Returns the command for Hadoop: words that need no quotes.
pub(super) fn command_line(program: &str, marker: &str, side: Side, shipment: &str) -> String {
    format!("./{program} {marker} {} {shipment}", side.word())
}

/// Returns the name under which commands find a file of the engine directory; files are shipped under their
/// own names.
pub(super) fn shipped_name(path: &Path) -> Result<String, String> {
    let name = path.file_name().and_then(OsStr::to_str);
    name.map(str::to_owned)
        .ok_or_else(|| format!("the file name of {} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(variables: &[(&str, &str)]) -> Result<(String, u32, Option<u32>), String> {
        let of = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Attempt::of(of).map(|attempt| (attempt.id, attempt.number, attempt.partition))
    }

    #[test]
    fn attempt_id_is_read_from_old_and_new_variables() {
        let new = [
            ("mapreduce_task_attempt_id", "attempt_1_0002_r_000003_1"),
            ("mapreduce_task_partition", "3"),
        ];
        assert_eq!(
            attempt(&new),
            Ok(("attempt_1_0002_r_000003_1".to_owned(), 2, Some(3)))
        );
        let old = [("mapred_task_id", "attempt_local_0001_m_000000_0")];
        assert_eq!(
            attempt(&old),
            Ok(("attempt_local_0001_m_000000_0".to_owned(), 1, None))
        );
        assert!(
            attempt(&[])
                .expect_err("nothing")
                .contains("has not set mapreduce_task_attempt_id")
        );
        assert!(
            attempt(&[("mapred_task_id", "x")])
                .expect_err("no id")
                .contains("invalid attempt id x")
        );
    }

    #[test]
    fn last_stderr_lines_of_guest_are_kept() {
        let long = "a line of many\n".repeat(1_000) + "the reason\n";
        let mut log = Vec::new();
        let tail = copy_errors(long.as_bytes(), &mut log);
        assert_eq!(log, long.as_bytes());
        assert!(
            tail.ends_with("the reason") && tail.len() <= QUOTED_BYTES,
            "{}",
            tail.len()
        );
    }

    #[test]
    fn report_is_one_line() {
        let mut written = Vec::new();
        write_report(&mut written, b"{\n \"task\": \"a\\tb\\n\"\n}\n").expect("it is JSON");
        assert_eq!(
            String::from_utf8(written).expect("text"),
            "{\"task\":\"a\\tb\\n\"}\n"
        );
    }
}
