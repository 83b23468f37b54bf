//! `--fsync`: when the journal is synced to disk.

use std::fmt;
use std::str::FromStr;

use napreduce_cluster::FsyncPolicy;
use napreduce_protocol::parse_time;

/// When the journal is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fsync(pub FsyncPolicy);

impl FromStr for Fsync {
    type Err = String;

    fn from_str(text: &str) -> Result<Fsync, String> {
        Ok(Fsync(match text {
            "always" => FsyncPolicy::Always,
            "never" => FsyncPolicy::Never,
            interval => FsyncPolicy::Interval(parse_time(interval).map_err(|_| {
                format!("invalid value {text:?}: expected always, never or a time such as 100ms")
            })?),
        }))
    }
}

impl fmt::Display for Fsync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FsyncPolicy::Always => f.write_str("always"),
            FsyncPolicy::Never => f.write_str("never"),
            FsyncPolicy::Interval(interval) => write!(f, "{}us", interval.as_micros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn fsync_reads_words_and_intervals() {
        assert_eq!("always".parse(), Ok(Fsync(FsyncPolicy::Always)));
        assert_eq!("never".parse(), Ok(Fsync(FsyncPolicy::Never)));
        assert_eq!("100ms".parse(), Ok(Fsync(FsyncPolicy::Interval(Duration::from_millis(100)))));
        assert!("often".parse::<Fsync>().expect_err("no time").contains("always, never or a time"));
    }
}
