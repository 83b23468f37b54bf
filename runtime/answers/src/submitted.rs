//! How a job was submitted, and the earlier jobs of its name.

use std::fmt::Write as _;

use napreduce_protocol::{ByteSize, Invocation, JobDetail, JobSummary, SchedulerTables};
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{JobAnswer, SettingsAnswer};

/// The most earlier jobs in an answer.
const EARLIER_MAX: usize = 20;
/// Bytes of a line of a command, unless it has one long argument.
const LINE_BYTES_MAX: usize = 72;

/// How a job was submitted. `null` values are not recorded: the job is from an earlier version, or embedded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SubmittedAnswer {
    pub job: String,
    pub name: String,
    pub user: String,
    pub queue: String,
    pub priority: i32,
    pub output: String,
    pub program: Option<BlobAnswer>,
    /// Side files of the job.
    pub files: Vec<SideFileAnswer>,
    /// The job that this one is a rerun of; `command` is that of the first run, whose output can be another.
    pub rerun_of: Option<String>,
    /// `null` if the job was not submitted by a command line.
    pub command: Option<CommandAnswer>,
    pub splits: Option<u32>,
    pub input_bytes: Option<u64>,
    pub settings: Option<SettingsAnswer>,
    /// The scheduler when the job ended; `null` before.
    pub scheduler: Option<SchedulerAnswer>,
}

/// The command line of a submission. Secrets are replaced by `***`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommandAnswer {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Number of arguments beyond the 16 KiB that are recorded.
    pub arguments_left_out: u32,
    /// Working directory.
    pub directory: String,
    /// The same for a shell; `null` if arguments are left out.
    pub shell: Option<String>,
    /// Whether the shell needs secrets in place of `***`.
    pub lacks_secrets: bool,
    /// The first 100 inputs.
    pub inputs: Vec<String>,
    pub inputs_total: u32,
    pub split_size_bytes: u64,
    /// Values of `--conf`.
    pub confs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BlobAnswer {
    pub sha256: String,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SideFileAnswer {
    pub name: String,
    pub sha256: String,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SchedulerAnswer {
    pub name: String,
    /// Its table and `[preemption]` as JSON, where they differ from the published values.
    pub tables: String,
}

/// A row of what was submitted, the same for every job, so that two can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedRow {
    pub label: &'static str,
    /// One item a line; `None` if the job cannot have it.
    pub text: Option<String>,
}

/// How a job was submitted, with the earlier jobs of its name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SubmittedPage {
    #[serde(flatten)]
    pub submitted: SubmittedAnswer,
    /// Jobs of the same name, submitted before; newest first, at most 20.
    pub earlier: Vec<JobAnswer>,
    pub earlier_total: usize,
}

impl From<&JobDetail> for SubmittedAnswer {
    fn from(detail: &JobDetail) -> SubmittedAnswer {
        let job = &detail.summary;
        let submitted = detail.submitted.as_ref();
        let files = submitted
            .map_or(&[][..], |submitted| &submitted.files)
            .iter();
        SubmittedAnswer {
            job: job.job.to_string(),
            name: job.name.clone(),
            user: job.user.clone(),
            queue: job.queue.clone(),
            priority: job.priority,
            output: job.output.to_string_lossy().into_owned(),
            program: submitted
                .and_then(|submitted| submitted.program)
                .map(|blob| BlobAnswer {
                    sha256: blob.digest.to_string(),
                    bytes: blob.bytes,
                }),
            files: files
                .map(|file| SideFileAnswer {
                    name: file.name.clone(),
                    sha256: file.blob.digest.to_string(),
                    bytes: file.blob.bytes,
                })
                .collect(),
            rerun_of: submitted
                .and_then(|submitted| submitted.rerun_of)
                .map(|job| job.to_string()),
            command: submitted
                .and_then(|submitted| submitted.invocation.as_ref())
                .map(CommandAnswer::from),
            splits: submitted.map(|submitted| submitted.splits),
            input_bytes: submitted.map(|submitted| submitted.input_bytes),
            settings: detail.settings.as_ref().map(SettingsAnswer::from),
            scheduler: detail.scheduler.as_ref().map(SchedulerAnswer::from),
        }
    }
}

impl SubmittedAnswer {
    /// Returns the label and text of everything that was submitted.
    pub fn rows(&self) -> Vec<SubmittedRow> {
        let mut rows = Vec::new();
        let mut row = |label, text| rows.push(SubmittedRow { label, text });
        row("Rerun of", self.rerun_of.clone());
        row(
            "Command line",
            of_known(self.command.as_ref(), CommandAnswer::text),
        );
        row(
            "Working directory",
            of_known(self.command.as_ref(), |command| command.directory.clone()),
        );
        row(
            "Inputs",
            of_known(self.command.as_ref(), CommandAnswer::inputs_text),
        );
        row(
            "Size of the inputs",
            of_known(self.splits, |splits| {
                let tasks = if splits == 1 { "map task" } else { "map tasks" };
                format!(
                    "{} bytes in {splits} {tasks}",
                    self.input_bytes.unwrap_or(0)
                )
            }),
        );
        row(
            "Split size",
            of_known(self.command.as_ref(), |command| {
                ByteSize::new(command.split_size_bytes).to_string()
            }),
        );
        row(
            "Settings by --conf",
            of_known(self.command.as_ref(), |command| lines_of(&command.confs)),
        );
        row(
            "Program",
            of_known(self.program.as_ref(), |blob| {
                format!("{} bytes\nSHA-256 {}", blob.bytes, blob.sha256)
            }),
        );
        row("Side files", of_known(self.splits, |_| self.files_text()));
        row("Output", Some(self.output.clone()));
        row(
            "Queue, priority now",
            Some(format!("{}, {}", self.queue, self.priority)),
        );
        row("User", Some(self.user.clone()));
        row(
            "Scheduler at its end",
            self.scheduler.as_ref().map(SchedulerAnswer::text),
        );
        let mut setting = |label, text: fn(&SettingsAnswer) -> String| {
            row(label, of_known(self.settings.as_ref(), text));
        };
        setting("Job of the program", |settings| settings.definition.clone());
        setting("Reduce tasks", |settings| settings.reduces.to_string());
        setting("Attempts per task", |settings| {
            settings.attempts_max.to_string()
        });
        setting("Memory per attempt", |settings| {
            ByteSize::new(settings.task_memory_bytes).to_string()
        });
        setting("Slow-start of reduces", |settings| {
            format!("{} %", f64::from(settings.slowstart_permille) / 10.0)
        });
        setting("Timeout without progress", |settings| {
            match settings.task_timeout_millis {
                0 => "never".to_owned(),
                millis => seconds(millis),
            }
        });
        setting("Deadline", |settings| {
            settings
                .deadline_millis
                .map_or_else(|| "none".to_owned(), seconds)
        });
        setting("Map checkpoints", |settings| {
            yes_or_no(settings.checkpoint_maps)
        });
        setting("Reduce checkpoints", |settings| {
            yes_or_no(settings.checkpoint_reduces)
        });
        setting("Compressed map output", |settings| {
            yes_or_no(settings.compress)
        });
        setting("Overwrites its output", |settings| {
            yes_or_no(settings.overwrite)
        });
        setting("Syncs to disk", |settings| yes_or_no(settings.durable));
        rows
    }

    fn files_text(&self) -> String {
        let file = |file: &SideFileAnswer| {
            format!(
                "{}: {} bytes, SHA-256 {}",
                file.name, file.bytes, file.sha256
            )
        };
        lines_of(&self.files.iter().map(file).collect::<Vec<_>>())
    }
}

/// Formats a value that earlier versions did not record.
fn of_known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> Option<String> {
    Some(value.map_or_else(|| "not recorded".to_owned(), text))
}

fn lines_of(items: &[String]) -> String {
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join("\n")
    }
}

fn yes_or_no(is: bool) -> String {
    if is {
        "yes".to_owned()
    } else {
        "no".to_owned()
    }
}

fn seconds(millis: u64) -> String {
    format!("{} s", millis as f64 / 1_000.0)
}

impl SchedulerAnswer {
    /// Returns the name, then a line `table.parameter = value` for each value that differs from the published one.
    fn text(&self) -> String {
        let mut lines = vec![self.name.clone()];
        match serde_json::from_str(&self.tables) {
            Ok(tables) => add_dotted(&tables, "", &mut lines),
            // Not JSON in a damaged history.
            Err(_) => lines.push(self.tables.clone()),
        }
        lines.join("\n")
    }
}

/// Adds a line for each value of nested tables; a value that is not set has none.
fn add_dotted(value: &serde_json::Value, path: &str, lines: &mut Vec<String>) {
    match value {
        serde_json::Value::Null => {}
        serde_json::Value::Object(fields) => {
            for (name, inner) in fields {
                let inner_path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                add_dotted(inner, &inner_path, lines);
            }
        }
        value => lines.push(format!("{path} = {value}")),
    }
}

impl From<&SchedulerTables> for SchedulerAnswer {
    fn from(scheduler: &SchedulerTables) -> SchedulerAnswer {
        SchedulerAnswer {
            name: scheduler.name.clone(),
            tables: scheduler.tables.clone(),
        }
    }
}

impl From<&Invocation> for CommandAnswer {
    fn from(invocation: &Invocation) -> CommandAnswer {
        let shell = (invocation.left_out == 0)
            .then(|| shell_line(&invocation.directory, &invocation.command));
        CommandAnswer {
            arguments: invocation.command.clone(),
            arguments_left_out: invocation.left_out,
            directory: invocation.directory.clone(),
            lacks_secrets: invocation
                .command
                .iter()
                .any(|argument| argument.contains("***")),
            shell,
            inputs: invocation.inputs.clone(),
            inputs_total: invocation.inputs_total,
            split_size_bytes: invocation.split_size,
            confs: invocation.confs.clone(),
        }
    }
}

impl CommandAnswer {
    /// Returns the command for a POSIX shell in the working directory, with one option a line.
    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for argument in &self.arguments {
            let word = quoted(argument);
            let is_option = argument.starts_with('-') && argument.len() > 1;
            match lines.last_mut() {
                Some(line) if !is_option && line.len() + 1 + word.len() <= LINE_BYTES_MAX => {
                    line.push(' ');
                    line.push_str(&word);
                }
                // The value of an option stays with it.
                Some(line) if !is_option && !line.contains(' ') => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        if self.arguments_left_out > 0 {
            lines.push(format!("... ({} more arguments)", self.arguments_left_out));
        }
        lines.join(" \\\n")
    }

    fn inputs_text(&self) -> String {
        let mut lines = self.inputs.clone();
        let shown = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        if self.inputs_total > shown {
            lines.push(format!("and {} more", self.inputs_total - shown));
        }
        lines_of(&lines)
    }
}

impl SubmittedPage {
    /// Selects the earlier jobs of the same name.
    pub fn new(detail: &JobDetail, jobs: &[JobSummary]) -> SubmittedPage {
        let job = &detail.summary;
        let is_earlier = |other: &&JobSummary| {
            other.name == job.name
                && (other.submitted_millis, other.job) < (job.submitted_millis, job.job)
        };
        let mut earlier: Vec<&JobSummary> = jobs.iter().filter(is_earlier).collect();
        earlier.sort_by_key(|job| std::cmp::Reverse((job.submitted_millis, job.job)));
        SubmittedPage {
            submitted: detail.into(),
            earlier_total: earlier.len(),
            earlier: earlier
                .into_iter()
                .take(EARLIER_MAX)
                .map(JobAnswer::from)
                .collect(),
        }
    }
}

/// Returns a line for a POSIX shell that runs the command in the directory.
fn shell_line(directory: &str, command: &[String]) -> String {
    let mut line = format!("cd {} &&", quoted(directory));
    for argument in command {
        // Writing to a string cannot fail.
        let _ = write!(line, " {}", quoted(argument));
    }
    line
}

/// Quotes a word unless a shell takes every character of it literally.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use napreduce_engine::JobId;
    use napreduce_protocol::Submitted;
    use serde_json::to_value;

    use super::super::samples::{EVIL, detail};
    use super::*;

    #[test]
    fn shell_line_runs_with_the_same_arguments() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("it's a folder; $HOME");
        std::fs::create_dir(&directory).expect("a folder");
        let arguments = [
            "plain",
            "",
            "a b",
            "it's",
            "$(reboot)",
            "`x`",
            "*",
            "\n",
            "~",
            "--x=1",
            "\\",
            EVIL,
        ];
        let command: Vec<String> = ["printf", "%s|"]
            .iter()
            .chain(&arguments)
            .map(|argument| (*argument).to_owned())
            .collect();
        let line = shell_line(&directory.to_string_lossy(), &command);
        let ran = Command::new("sh")
            .arg("-c")
            .arg(&line)
            .output()
            .expect("a shell");
        let expected: String = arguments
            .iter()
            .map(|argument| format!("{argument}|"))
            .collect();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{line}");
    }

    #[test]
    fn command_has_an_option_a_line_and_the_same_arguments() {
        let arguments = [
            "%s|",
            "in put",
            "-",
            "--output",
            "/a b/out",
            "--reduces",
            "4",
            "--overwrite",
            "-x",
        ];
        let command: Vec<String> = ["printf"]
            .iter()
            .chain(&arguments)
            .map(|argument| (*argument).to_owned())
            .collect();
        let text = CommandAnswer::from(&Invocation {
            command,
            ..Invocation::default()
        })
        .text();
        assert_eq!(
            text,
            "printf '%s|' 'in put' - \\\n--output '/a b/out' \\\n--reduces 4 \\\n--overwrite \\\n-x"
        );
        let ran = Command::new("sh")
            .arg("-c")
            .arg(&text)
            .output()
            .expect("a shell");
        let expected: String = arguments[1..]
            .iter()
            .map(|argument| format!("{argument}|"))
            .collect();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
    }

    #[test]
    fn scheduler_has_a_parameter_a_line() {
        let scheduler = |tables: &str| SchedulerAnswer {
            name: "fair".to_owned(),
            tables: tables.to_owned(),
        };
        let tables = r#"{"fair": {"pools": {"a.b": {"weight": 3}}, "none": null}, "preemption": {"grace": "5s"}}"#;
        let expected = "fair\nfair.pools.a.b.weight = 3\npreemption.grace = \"5s\"";
        assert_eq!(scheduler(tables).text(), expected);
        assert_eq!(scheduler("{").text(), "fair\n{");
    }

    #[test]
    fn rows_are_the_same_for_every_job() {
        let known = SubmittedAnswer::from(&JobDetail {
            submitted: Some(Submitted::new(
                None,
                &[],
                Some(&Invocation::default()),
                &[],
                Some(JobId(3)),
            )),
            ..detail()
        });
        let unknown = SubmittedAnswer::from(&detail()).rows();
        let labels = |rows: &[SubmittedRow]| rows.iter().map(|row| row.label).collect::<Vec<_>>();
        assert_eq!(labels(&known.rows()), labels(&unknown));
        let text = |label: &str| {
            unknown
                .iter()
                .find(|row| row.label == label)
                .expect(label)
                .text
                .clone()
        };
        assert_eq!(text("Command line").as_deref(), Some("not recorded"));
        assert_eq!(text("Rerun of"), None);
    }

    #[test]
    fn earlier_versions_have_recorded_nothing() {
        let answer = to_value(SubmittedAnswer::from(&detail())).expect("JSON");
        for name in ["program", "command", "splits", "settings", "scheduler"] {
            assert!(answer[name].is_null(), "{name}: {answer}");
        }
    }

    #[test]
    fn incomplete_command_has_no_shell_line() {
        let invocation = Invocation {
            command: vec!["job".to_owned(), "***".to_owned()],
            ..Invocation::default()
        };
        let answer = |invocation: &Invocation| {
            let submitted = Some(Submitted::new(
                None,
                &[],
                Some(invocation),
                &[],
                Some(JobId(3)),
            ));
            let answer = SubmittedAnswer::from(&JobDetail {
                submitted,
                ..detail()
            });
            assert_eq!(answer.rerun_of.as_deref(), Some("job_0003"));
            answer.command.expect("a command")
        };
        assert!(answer(&invocation).lacks_secrets && answer(&invocation).shell.is_some());
        assert_eq!(
            answer(&Invocation {
                left_out: 1,
                ..invocation
            })
            .shell,
            None
        );
    }

    #[test]
    fn earlier_jobs_have_the_name_and_are_limited() {
        let this = detail();
        let run = |number: u32, name: &str, before: u64| {
            let mut job = this.summary.clone();
            (job.job, job.name) = (JobId(number), name.to_owned());
            job.submitted_millis -= before;
            job
        };
        let name = this.summary.name.as_str();
        let mut jobs: Vec<JobSummary> = (10..35)
            .map(|number| run(number, name, u64::from(number)))
            .collect();
        jobs.extend([this.summary.clone(), run(40, "other", 5)]);
        let page = SubmittedPage::new(&this, &jobs);
        assert_eq!((page.earlier.len(), page.earlier_total), (20, 25));
        assert_eq!(
            (page.earlier[0].job.as_str(), page.earlier[19].job.as_str()),
            ("job_0010", "job_0029")
        );
    }
}
