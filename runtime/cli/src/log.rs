//! The log of a daemon: flags, line format, level filter (`NAPREDUCE_LOG`), and daily rotation.

use std::ffi::OsString;
use std::fmt::{self, Debug, Write as _};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use anyhow::Result;
use clap::{Args, ValueEnum};
use napreduce_local::SPAN_TARGET;
use napreduce_protocol::one_line;
use thiserror::Error;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::rolling::{InitError, RollingFileAppender, Rotation};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The variable with the log level, or levels by component, such as `info,worker=debug`.
const FILTER_VARIABLE: &str = "NAPREDUCE_LOG";
/// Number of daily files to keep.
const DAYS_MAX: usize = 7;
/// Maximum columns of a line; messages may contain text of users.
const COLUMNS_MAX: usize = 4_000;

/// The log of a daemon. `NAPREDUCE_LOG` sets its levels.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArguments {
    /// Format of the log; NAPREDUCE_LOG sets levels, such as debug or info,worker=debug [default: text]
    #[arg(long, value_name = "FORM", env = "NAPREDUCE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Directory for daily log files, of which seven are kept [default: log to standard error]
    #[arg(long, value_name = "DIR", env = "NAPREDUCE_LOG_DIRECTORY")]
    pub log_directory: Option<PathBuf>,
}

/// Lines of a log: text with time (UTC), component and message, or JSON objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogArguments {
    /// Starts the log of this daemon; `name` begins the names of its files.
    pub fn start(&self, name: &str) -> Result<()> {
        let files = self
            .log_directory
            .as_deref()
            .map(|directory| (directory, name));
        Ok(start(self.log_format.unwrap_or_default(), files)?)
    }

    /// Returns the flags that were given, for another process.
    pub fn to_line(&self) -> Vec<OsString> {
        let format = self
            .log_format
            .and_then(|format| format.to_possible_value());
        let format = format.map(|format| format.get_name().into());
        let directory = self.log_directory.clone().map(OsString::from);
        let flags = [("--log-format", format), ("--log-directory", directory)];
        flags
            .into_iter()
            .filter_map(|(flag, value)| Some([flag.into(), value?]))
            .flatten()
            .collect()
    }
}

/// The log of a daemon cannot be started.
#[derive(Debug, Error)]
pub enum LogError {
    /// `NAPREDUCE_LOG` is invalid.
    #[error(
        "invalid {FILTER_VARIABLE}={text}: {source}; give a level (error, warn, info, debug, trace), or levels by component \
         such as info,worker=debug"
    )]
    Filter {
        /// Its value.
        text: String,
        /// The parse error.
        source: ParseError,
    },
    /// The directory of log files cannot be used.
    #[error("cannot write logs to {path}: {source}")]
    Files {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: InitError,
    },
    /// The log of this process is already started.
    #[error("the log of this process is already started")]
    AlreadyStarted,
}

/// Starts the log of this process, once: daily files in a directory with a name prefix, or standard error.
///
/// # Errors
/// If `NAPREDUCE_LOG` is invalid, if files cannot be written, or at a second call.
fn start(format: LogFormat, files: Option<(&Path, &str)>) -> std::result::Result<(), LogError> {
    let filter = filter(std::env::var(FILTER_VARIABLE).ok())?;
    let Some((path, prefix)) = files else {
        return install(format, filter, io::stderr);
    };
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(prefix)
        .filename_suffix("log")
        .max_log_files(DAYS_MAX)
        .build(path)
        .map_err(|source| LogError::Files {
            path: path.to_owned(),
            source,
        })?;
    install(format, filter, Mutex::new(DailyFiles(files)))
}

/// Daily log files. Lines that cannot be written are lost.
struct DailyFiles(RollingFileAppender);

impl Write for DailyFiles {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The appender reports errors with `eprintln!`, which may panic.
        let written = panic::catch_unwind(AssertUnwindSafe(|| self.0.write(bytes)));
        written.unwrap_or_else(|_| Err(io::Error::other("standard error cannot be written")))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn filter(text: Option<String>) -> std::result::Result<Targets, LogError> {
    let targets = match text.filter(|text| !text.trim().is_empty()) {
        None => Targets::new().with_default(LevelFilter::INFO),
        Some(text) => text
            .parse()
            .map_err(|source| LogError::Filter { text, source })?,
    };
    Ok(targets.with_target(SPAN_TARGET, LevelFilter::INFO))
}

fn install<W>(format: LogFormat, filter: Targets, writer: W) -> std::result::Result<(), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(false);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => Box::new(layer.event_format(TextFormat)),
        LogFormat::Json => Box::new(layer.json().flatten_event(true)),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init()
        .map_err(|_| LogError::AlreadyStarted)
}

/// Formats `2026-11-22T13:04:05.678Z worker w1: text`, with the level unless it is INFO, and the innermost span.
struct TextFormat;

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    worker: Option<String>,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "worker" => self.worker = Some(format!("{value:?}")),
            name => {
                // Writing to a `String` cannot fail.
                let _ = write!(self.rest, " {name}={value:?}");
            }
        }
    }
}

impl<S, N> FormatEvent<S, N> for TextFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
        write!(writer, "{now:.3} {}", event.metadata().target())?;
        if let Some(worker) = &fields.worker {
            write!(writer, " {}", one_line(worker, COLUMNS_MAX))?;
        }
        if *event.metadata().level() != Level::INFO {
            write!(writer, " {}", event.metadata().level())?;
        }
        // The innermost span is enough: the ID of an attempt contains its task and job.
        if let Some(span) = context.lookup_current()
            && let Some(fields) = span.extensions().get::<FormattedFields<N>>()
        {
            write!(writer, " {}[{fields}]", span.name())?;
        }
        writeln!(
            writer,
            ": {}",
            one_line(&format!("{}{}", fields.message, fields.rest), COLUMNS_MAX)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A writer to memory.
    #[derive(Clone, Default)]
    struct MemoryLog(Arc<Mutex<Vec<u8>>>);

    impl Write for MemoryLog {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the log lines of these calls, without their times.
    fn lines(filter_text: Option<&str>, say: impl FnOnce()) -> Vec<String> {
        let log = MemoryLog::default();
        let writer = log.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(TextFormat)
            .with_filter(filter(filter_text.map(str::to_owned)).expect("a filter"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        let bytes = log.0.lock().expect("no panic").clone();
        let text = String::from_utf8(bytes).expect("text");
        text.lines()
            .map(|line| line.split_once(' ').expect("a time").1.to_owned())
            .collect()
    }

    #[test]
    fn line_has_component_worker_and_escaped_message() {
        let output = lines(None, || {
            tracing::info!(target: "worker", worker = %"w1", "started\nand \u{1b}[31mred");
            tracing::warn!(target: "coordinator", "the disk is full");
            tracing::debug!(target: "coordinator", "not worth a line");
        });
        assert_eq!(output.len(), 2, "{output:?}");
        assert!(
            output[0].starts_with("worker w1: started") && !output[0].contains('\u{1b}'),
            "{output:?}"
        );
        assert_eq!(output[1], "coordinator WARN: the disk is full");
    }

    #[test]
    fn filter_sets_levels_by_component() {
        let output = lines(Some("warn,worker=debug"), || {
            let _in =
                tracing::info_span!(target: SPAN_TARGET, "attempt", id = %"job_0001_m_0000.1")
                    .entered();
            tracing::debug!(target: "worker", "suspended");
            tracing::info!(target: "coordinator", "not worth a line");
        });
        assert_eq!(
            output,
            ["worker DEBUG attempt[id=job_0001_m_0000.1]: suspended"]
        );
    }

    #[test]
    fn invalid_filter_is_rejected_by_value() {
        let error = filter(Some("worker=loud".to_owned()))
            .expect_err("no level")
            .to_string();
        assert!(
            error.starts_with("invalid NAPREDUCE_LOG=worker=loud: "),
            "{error}"
        );
    }
}
