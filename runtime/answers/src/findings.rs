//! The reasons why a job is or was slow.

use std::collections::BTreeMap;

use napreduce_history::{Finding, findings_of};
use napreduce_protocol::{JobDetail, TaskSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// A cause of slowness with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingAnswer {
    /// `skew`, `hot-key`, `straggler`, `slow-worker`, `preempted`, `small-files`, `waiting-for-maps` or `spills`.
    pub code: &'static str,
    /// The sentence.
    pub text: String,
    /// IDs of tasks, attempts, workers and jobs in it.
    pub about: Vec<String>,
    /// The numbers in it, by names that end with the unit.
    pub figures: BTreeMap<&'static str, u64>,
    /// The remedy; a command follows a colon.
    pub remedy: Option<String>,
}

impl FindingAnswer {
    /// Returns the findings of a job. `tasks` is empty for ended jobs.
    pub fn all_of(
        detail: &JobDetail,
        tasks: &[TaskSummary],
        now_micros: u64,
    ) -> Vec<FindingAnswer> {
        findings_of(detail, tasks, now_micros)
            .into_iter()
            .map(FindingAnswer::from)
            .collect()
    }

    /// Returns the sentence with the remedy.
    pub fn line(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; {remedy}", self.text),
            None => self.text.clone(),
        }
    }
}

impl From<Finding> for FindingAnswer {
    fn from(finding: Finding) -> FindingAnswer {
        let Finding {
            code,
            text,
            about,
            figures,
            remedy,
            ..
        } = finding;
        FindingAnswer {
            code: code.in_words(),
            text,
            about,
            figures,
            remedy,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::super::samples::{detail, skewed};
    use super::*;

    #[test]
    fn finding_is_an_object_with_its_evidence() {
        let found = FindingAnswer::all_of(&skewed(), &[], 0);
        assert_eq!(
            to_value(&found).expect("JSON"),
            json!([{
                "code": "skew",
                "text": "job_0007_r_0002 read 89 % of all records, 34 times the median of the others, and held the job up by 9.6 s",
                "about": ["job_0007_r_0002"],
                "figures": {
                    "records": 34_000, "median_records": 1_000, "total_records": 38_000, "held_up_millis": 9_600,
                },
                "remedy": "combine on the map side, or partition by more of the key",
            }])
        );
        assert!(
            found[0]
                .line()
                .ends_with("by 9.6 s; combine on the map side, or partition by more of the key")
        );
        assert_eq!(FindingAnswer::all_of(&detail(), &[], 0), []);
    }
}
