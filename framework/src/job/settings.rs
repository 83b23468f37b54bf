//! Settings of a job that few people need: the keys of `--conf KEY=VALUE`.
//!
//! Owns their names, ranges and defaults. Does not own what they do; each says where it acts.

use napreduce_data::Compression;
use serde::{Deserialize, Serialize};

/// Printed under every program's `--help`.
pub(crate) const SETTINGS_HELP: &str = "\
Settings for --conf:
  attempts-max=N          failures of one task before the job fails (1 to 100, default 4)
  compression=none|lz4    how map output is kept on local disk (default none)
  fan-in=N                sorted runs merged at once (2 to 1024, default 64)
  durable=true|false      force map output to the disk before it counts (default false)";

/// Parsed settings; they travel to the task processes beside the job's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub attempts_max: u32,
    pub compress: bool,
    pub fan_in: u32,
    pub durable: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { attempts_max: 4, compress: false, fan_in: 64, durable: false }
    }
}

/// A `--conf` that is not understood.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(crate) enum SettingError {
    #[error("--conf {0:?} is not of the form KEY=VALUE")]
    Form(String),
    #[error("--conf knows no setting {0:?}; allowed: attempts-max, compression, fan-in, durable")]
    Unknown(String),
    #[error("--conf {key}={value:?} is not allowed; allowed: {allowed}")]
    Value { key: &'static str, value: String, allowed: &'static str },
}

impl Settings {
    pub(crate) fn compression(&self) -> Compression {
        if self.compress { Compression::Lz4 } else { Compression::None }
    }

    /// Reads the settings in order; a later one replaces an earlier one of the same name.
    pub(crate) fn parse(pairs: &[String]) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for pair in pairs {
            let (key, value) = pair.split_once('=').ok_or_else(|| SettingError::Form(pair.clone()))?;
            settings.set(key.trim(), value.trim())?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        match key {
            "attempts-max" => self.attempts_max = number("attempts-max", value, 1, 100, "1 to 100")? as u32,
            "fan-in" => self.fan_in = number("fan-in", value, 2, 1024, "2 to 1024")? as u32,
            "compression" => {
                self.compress = match value {
                    "none" => false,
                    "lz4" => true,
                    _ => return Err(not_allowed("compression", value, "none, lz4")),
                }
            }
            "durable" => {
                self.durable = value.parse().map_err(|_| not_allowed("durable", value, "true, false"))?;
            }
            _ => return Err(SettingError::Unknown(key.to_owned())),
        }
        Ok(())
    }
}

fn number(
    key: &'static str,
    value: &str,
    least: u64,
    most: u64,
    allowed: &'static str,
) -> Result<u64, SettingError> {
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(not_allowed(key, value, allowed)),
    }
}

fn not_allowed(key: &'static str, value: &str, allowed: &'static str) -> SettingError {
    SettingError::Value { key, value: value.to_owned(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[&str]) -> Result<Settings, SettingError> {
        Settings::parse(&pairs.iter().map(|pair| pair.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        assert_eq!(parse(&[]), Ok(Settings::default()));
    }

    #[test]
    fn every_setting_is_read_and_the_last_word_counts() {
        let settings = parse(&["attempts-max=2", "compression=lz4", "fan-in=8", "durable=true", "fan-in=16"]);
        let expected = Settings { attempts_max: 2, compress: true, fan_in: 16, durable: true };
        assert_eq!(settings, Ok(expected));
    }

    #[test]
    fn wrong_settings_are_named_with_what_is_allowed() {
        for (pair, message) in [
            ("fan-in", r#"--conf "fan-in" is not of the form KEY=VALUE"#),
            ("fan-in=1", r#"--conf fan-in="1" is not allowed; allowed: 2 to 1024"#),
            ("durable=maybe", r#"--conf durable="maybe" is not allowed; allowed: true, false"#),
            ("compression=zip", r#"--conf compression="zip" is not allowed; allowed: none, lz4"#),
        ] {
            assert_eq!(parse(&[pair]).unwrap_err().to_string(), message);
        }
        assert!(parse(&["x=1"]).unwrap_err().to_string().contains("knows no setting \"x\""));
    }
}
