//! Advanced settings of a job: names, ranges and defaults of the keys of `--conf KEY=VALUE`.

use std::ops::RangeInclusive;
use std::time::Duration;

use napreduce_data::BlockCompression;
use napreduce_local::SIDE_FILE_BYTES_MAX;
use napreduce_protocol::{ByteSize, JobPlan, parse_time};
use serde::{Deserialize, Serialize};

use crate::input::Skip;
use crate::limits;

/// Part of every program's `--help`.
pub(crate) const SETTINGS_HELP: &str = "\
Settings for --conf:
  attempts-max=N          failures of one task before the job fails
                          (1 to 100, default 4)
  combine-files=true|false
                          whether one map task reads several small files
                          (default true)
  compression=none|lz4    compression of map output on local disk
                          (default none)
  fan-in=N                sorted runs merged at once (2 to 1024, default 256)
  durable=true|false      whether map output, checkpoints and output are synced
                          to disk (default false; output of jobs on a cluster
                          always is)
  slowstart=SHARE         share of maps to complete before reduces start
                          (0 to 1, default 0.8)
  side-file-max=SIZE      maximum size of a file of --files on a cluster
                          (default 4GiB)
  task-timeout=TIME       time without progress after which a task is killed and
                          retried (such as 90s or 10m, 0s for never,
                          default 600s)";

/// Failures of one task before its job fails.
const ATTEMPTS_MAX: RangeInclusive<u32> = 1..=100;

/// Sources of one merge.
const FAN_IN: RangeInclusive<u32> = 2..=1024;

/// Default number of sources of one merge. Sources are mapped and read ahead by the kernel, so many of them
/// cost less than another pass over the data.
pub(crate) const FAN_IN_DEFAULT: u32 = 256;

/// Parsed settings; sent to the task processes with the job's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub attempts_max: u32,
    pub combine_files: bool,
    pub compress: bool,
    pub fan_in: u32,
    pub durable: bool,
    /// In thousandths.
    pub slowstart_permille: u32,
    pub task_timeout: Duration,
    /// In bytes.
    pub side_file_max: u64,
    /// Set by `--bad-input`, not by `--conf`.
    pub bad_input: Skip,
    /// Number of splits of each input of the job, in order; empty if there is one input. Not set by `--conf`.
    #[serde(default)]
    pub split_counts: Vec<u32>,
    /// Whether an output of pairs is typed records, for another job or for the program, instead of text. Not set
    /// by `--conf`.
    #[serde(default)]
    pub records: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            attempts_max: JobPlan::ATTEMPTS_MAX_DEFAULT,
            combine_files: true,
            compress: false,
            fan_in: FAN_IN_DEFAULT,
            durable: false,
            slowstart_permille: JobPlan::SLOWSTART_PERMILLE_DEFAULT,
            task_timeout: JobPlan::TASK_TIMEOUT_DEFAULT,
            side_file_max: SIDE_FILE_BYTES_MAX,
            bad_input: Skip::default(),
            split_counts: Vec::new(),
            records: false,
        }
    }
}

/// The error for an invalid `--conf`.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(crate) enum SettingError {
    #[error("--conf {0:?}: expected KEY=VALUE")]
    Form(String),
    #[error(
        "--conf {0:?}: unknown setting; use attempts-max, combine-files, compression, fan-in, durable, \
         slowstart, side-file-max, task-timeout"
    )]
    Unknown(String),
    #[error("--conf {key}={value:?}: invalid value; use {allowed}")]
    Value {
        key: &'static str,
        value: String,
        allowed: &'static str,
    },
}

impl Settings {
    pub(crate) fn compression(&self) -> BlockCompression {
        if self.compress {
            BlockCompression::Lz4
        } else {
            BlockCompression::None
        }
    }

    /// Parses the settings in order; a later one replaces an earlier one of the same name.
    pub(crate) fn parse(pairs: &[String]) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for pair in pairs {
            settings.set_pair(pair)?;
        }
        Ok(settings)
    }

    /// Sets `KEY=VALUE`.
    pub(crate) fn set_pair(&mut self, pair: &str) -> Result<(), SettingError> {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| SettingError::Form(pair.to_owned()))?;
        self.set(key.trim(), value.trim())
    }

    /// Checks the numbers that methods have set.
    pub(crate) fn check(&self) -> Result<(), String> {
        limits::check("attempts max", self.attempts_max, &ATTEMPTS_MAX)?;
        limits::check("fan-in", self.fan_in, &FAN_IN)?;
        limits::check_time("task timeout", self.task_timeout)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        match key {
            "attempts-max" => {
                self.attempts_max = number("attempts-max", value, &ATTEMPTS_MAX, "1 to 100")?;
            }
            "combine-files" => {
                self.combine_files = value
                    .parse()
                    .map_err(|_| not_allowed("combine-files", value, "true, false"))?;
            }
            "fan-in" => self.fan_in = number("fan-in", value, &FAN_IN, "2 to 1024")?,
            "compression" => {
                self.compress = match value {
                    "none" => false,
                    "lz4" => true,
                    _ => return Err(not_allowed("compression", value, "none, lz4")),
                }
            }
            "durable" => {
                self.durable = value
                    .parse()
                    .map_err(|_| not_allowed("durable", value, "true, false"))?;
            }
            "slowstart" => self.slowstart_permille = share(value)?,
            "side-file-max" => {
                let size: ByteSize = value
                    .parse()
                    .map_err(|_| not_allowed("side-file-max", value, "a size such as 10GiB"))?;
                self.side_file_max = size.bytes();
            }
            "task-timeout" => {
                let allowed = "a time such as 90s or 10m, 0s for never";
                self.task_timeout =
                    parse_time(value).map_err(|_| not_allowed("task-timeout", value, allowed))?;
            }
            _ => return Err(SettingError::Unknown(key.to_owned())),
        }
        Ok(())
    }
}

fn number(
    key: &'static str,
    value: &str,
    valid: &RangeInclusive<u32>,
    allowed: &'static str,
) -> Result<u32, SettingError> {
    match value.parse() {
        Ok(number) if valid.contains(&number) => Ok(number),
        _ => Err(not_allowed(key, value, allowed)),
    }
}

/// Returns a fraction in thousandths, if it is from 0 to 1.
pub(crate) fn permille(share: f64) -> Option<u32> {
    if !(0.0..=1.0).contains(&share) {
        return None;
    }
    Some((share * 1000.0).round() as u32)
}

/// Parses a fraction into thousandths.
fn share(value: &str) -> Result<u32, SettingError> {
    let share = value.parse().ok().and_then(permille);
    share.ok_or_else(|| not_allowed("slowstart", value, "0 to 1"))
}

fn not_allowed(key: &'static str, value: &str, allowed: &'static str) -> SettingError {
    SettingError::Value {
        key,
        value: value.to_owned(),
        allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[&str]) -> Result<Settings, SettingError> {
        Settings::parse(
            &pairs
                .iter()
                .map(|pair| pair.to_string())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn empty_settings_are_defaults() {
        assert_eq!(parse(&[]), Ok(Settings::default()));
    }

    #[test]
    fn last_value_of_setting_wins() {
        let settings = parse(&[
            "attempts-max=2",
            "compression=lz4",
            "fan-in=8",
            "durable=true",
            "fan-in=16",
            "slowstart=0.25",
            "task-timeout=1h30m",
            "side-file-max=10GiB",
            "combine-files=false",
        ]);
        let expected = Settings {
            attempts_max: 2,
            combine_files: false,
            compress: true,
            fan_in: 16,
            durable: true,
            slowstart_permille: 250,
            task_timeout: Duration::from_secs(5400),
            side_file_max: 10 << 30,
            bad_input: Skip::None,
            split_counts: Vec::new(),
            records: false,
        };
        assert_eq!(settings, Ok(expected));
    }

    #[test]
    fn invalid_setting_names_allowed_values() {
        for (pair, message) in [
            ("fan-in", r#"--conf "fan-in": expected KEY=VALUE"#),
            (
                "fan-in=1",
                r#"--conf fan-in="1": invalid value; use 2 to 1024"#,
            ),
            (
                "durable=maybe",
                r#"--conf durable="maybe": invalid value; use true, false"#,
            ),
            (
                "slowstart=1.1",
                r#"--conf slowstart="1.1": invalid value; use 0 to 1"#,
            ),
            (
                "slowstart=NaN",
                r#"--conf slowstart="NaN": invalid value; use 0 to 1"#,
            ),
            (
                "task-timeout=-5s",
                r#"--conf task-timeout="-5s": invalid value; use a time such as 90s or 10m, 0s for never"#,
            ),
            (
                "side-file-max=much",
                r#"--conf side-file-max="much": invalid value; use a size such as 10GiB"#,
            ),
            (
                "compression=zip",
                r#"--conf compression="zip": invalid value; use none, lz4"#,
            ),
        ] {
            assert_eq!(parse(&[pair]).unwrap_err().to_string(), message);
        }
        assert!(
            parse(&["x=1"])
                .unwrap_err()
                .to_string()
                .contains("\"x\": unknown setting")
        );
    }
}
