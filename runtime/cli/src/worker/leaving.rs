//! Flags of `nap worker` and `nap up` for workers that another system ends.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use napreduce_cluster::{LeaveRules, OnTerminate};
use napreduce_protocol::parse_time;

use crate::cluster::{OnTerminateName, WorkerOptions, set};

/// The flags.
#[derive(Debug, Clone, Default, Args)]
pub struct LeaveArguments {
    /// Effect of SIGTERM on a worker [default: drain]
    #[arg(long, value_name = "HOW", env = "NAPREDUCE_ON_TERMINATE")]
    on_terminate: Option<OnTerminateName>,

    /// Time to leave after SIGTERM; tasks checkpoint in the first half [default: 25s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_GRACE")]
    grace: Option<Duration>,
}

impl LeaveArguments {
    /// Combines the flags with the configuration file.
    pub fn rules(&self, file: &WorkerOptions) -> Result<LeaveRules> {
        let mut rules = LeaveRules::default();
        set(
            &mut rules.on_terminate,
            self.on_terminate.map(meaning),
            file.on_terminate.map(meaning),
        );
        set(&mut rules.grace, self.grace, file.grace);
        if rules.grace.is_zero() {
            bail!("--grace 0s: leaves no time to save work; give --on-terminate leave instead");
        }
        Ok(rules)
    }

    /// Returns the flags that were given, for a daemon.
    pub fn to_line(&self) -> Vec<String> {
        let how = self.on_terminate.and_then(|how| how.to_possible_value());
        let how = how.map(|how| ["--on-terminate".to_owned(), how.get_name().to_owned()]);
        let grace = self
            .grace
            .map(|grace| ["--grace".to_owned(), format!("{}ms", grace.as_millis())]);
        [how, grace].into_iter().flatten().flatten().collect()
    }
}

/// Adds a time limit. Fails if the grace takes all of it.
pub fn limited(rules: LeaveRules, time_limit: Option<Duration>) -> Result<LeaveRules> {
    let rules = LeaveRules {
        time_limit,
        ..rules
    };
    if let (Some(Duration::ZERO), Some(limit)) = (rules.leaves_after(), time_limit) {
        let grace = rules.grace;
        bail!("--time-limit {limit:?}: must be longer than --grace ({grace:?})");
    }
    Ok(rules)
}

fn meaning(name: OnTerminateName) -> OnTerminate {
    match name {
        OnTerminateName::Drain => OnTerminate::Drain,
        OnTerminateName::Leave => OnTerminate::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Option<Duration> {
        Some(Duration::from_secs(count))
    }

    #[test]
    fn flag_overrides_file_and_file_overrides_default() {
        let file = WorkerOptions {
            on_terminate: Some(OnTerminateName::Leave),
            grace: seconds(50),
            ..WorkerOptions::default()
        };
        let flags = LeaveArguments {
            on_terminate: Some(OnTerminateName::Drain),
            grace: None,
        };
        let rules = flags.rules(&file).expect("valid flags");
        assert_eq!(
            (rules.on_terminate, rules.grace),
            (OnTerminate::Drain, Duration::from_secs(50))
        );
        let rules = LeaveArguments::default().rules(&file).expect("valid flags");
        assert_eq!(rules.on_terminate, OnTerminate::Leave);
        let rules = LeaveArguments::default()
            .rules(&WorkerOptions::default())
            .expect("valid flags");
        assert_eq!(rules, LeaveRules::default());
    }

    #[test]
    fn to_line_returns_the_given_flags() {
        let flags = LeaveArguments {
            on_terminate: Some(OnTerminateName::Leave),
            grace: seconds(3),
        };
        assert_eq!(
            flags.to_line(),
            ["--on-terminate", "leave", "--grace", "3000ms"]
        );
        assert_eq!(LeaveArguments::default().to_line(), [""; 0]);
    }

    #[test]
    fn grace_or_limit_without_time_is_rejected() {
        let none = LeaveArguments {
            grace: seconds(0),
            ..LeaveArguments::default()
        };
        let error = none
            .rules(&WorkerOptions::default())
            .expect_err("no time to save");
        assert!(
            error.to_string().contains("--on-terminate leave"),
            "{error}"
        );
        let rules = LeaveRules::default();
        assert_eq!(limited(rules, None).expect("no limit").time_limit, None);
        assert_eq!(
            limited(rules, seconds(60))
                .expect("half a minute of work")
                .time_limit,
            seconds(60)
        );
        let error = limited(rules, seconds(20))
            .expect_err("the grace is longer")
            .to_string();
        assert_eq!(error, "--time-limit 20s: must be longer than --grace (25s)");
    }
}
