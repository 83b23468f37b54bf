//! The plan file of a job for its guests, independent of the engine.

use std::path::PathBuf;

use napreduce_engine::JobId;
use napreduce_protocol::{InputSplit, JobPlan};
use serde::{Deserialize, Serialize};

use super::text_forms::{self, GuestTextError};

const FORMAT: &str = "napreduce-guest-plan/1";
/// Format of a plan with checkpoints: guests that do not support it must fail.
const FORMAT_SAVING: &str = "napreduce-guest-plan/2";

/// The plan of a job for its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPlan {
    format: String,
    #[serde(with = "text_forms")]
    pub job: JobId,
    /// Name of the job, for people.
    pub name: String,
    /// The definition of the program to build, and its encoded parameters.
    pub definition: String,
    pub parameters: String,
    /// Number of reduces; 0 makes the job map-only.
    pub reduces: u32,
    /// One map per split.
    pub splits: Vec<InputSplit>,
    /// The cut keys of a range partitioner, encoded, in hexadecimal.
    #[serde(with = "text_forms::keys")]
    pub cuts: Vec<Vec<u8>>,
    pub compress: bool,
    /// Memory that one attempt may use, in bytes.
    pub task_memory: u64,
    /// Whether parts are synced to disk before they are reported.
    pub durable: bool,
    /// Set if guests save checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<GuestCheckpoints>,
}

/// Location and interval of the checkpoints of one submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCheckpoints {
    /// A directory visible to all hosts of the engine, or a prefix of names in a store; unique to this
    /// submission and not guessable.
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub directory: PathBuf,
    /// Minimum work since the last checkpoint.
    pub interval_millis: u64,
}

impl GuestPlan {
    /// Creates a plan; the parameters must be text, as those of job programs are.
    ///
    /// # Errors
    /// Fails if the job's plan cannot be represented.
    pub fn of(job: JobId, plan: &JobPlan) -> Result<GuestPlan, String> {
        let parameters = String::from_utf8(plan.parameters.clone())
            .map_err(|_| format!("the parameters of {} are not UTF-8", plan.definition))?;
        Ok(GuestPlan {
            format: FORMAT.to_owned(),
            job,
            name: plan.name.clone(),
            definition: plan.definition.clone(),
            parameters,
            reduces: plan.reduces,
            splits: plan.splits.clone(),
            cuts: plan.cuts.clone(),
            compress: plan.compress,
            task_memory: plan.task_memory,
            durable: plan.durable,
            checkpoints: None,
        })
    }

    /// Returns the plan for guests that save checkpoints.
    pub fn saving(self, checkpoints: GuestCheckpoints) -> GuestPlan {
        GuestPlan {
            format: FORMAT_SAVING.to_owned(),
            checkpoints: Some(checkpoints),
            ..self
        }
    }

    /// Returns the number of maps.
    pub fn maps(&self) -> u32 {
        u32::try_from(self.splits.len()).unwrap_or(u32::MAX)
    }

    /// As JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, GuestTextError> {
        Ok(serde_json::to_vec_pretty(self)?)
    }

    /// Reads the output of `to_json`.
    ///
    /// # Errors
    /// Fails if the text is invalid or has another version.
    pub fn from_json(text: &[u8]) -> Result<GuestPlan, GuestTextError> {
        let plan: GuestPlan = text_forms::read(text, &[FORMAT, FORMAT_SAVING])?;
        let expected: &[&str] = if plan.checkpoints.is_some() {
            &[FORMAT_SAVING]
        } else {
            &[FORMAT]
        };
        if expected.contains(&plan.format.as_str()) {
            Ok(plan)
        } else {
            Err(GuestTextError::OtherFormat {
                found: plan.format,
                expected,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::Split;

    use super::*;

    fn plan() -> GuestPlan {
        let mut plan = JobPlan::new("sort", "out");
        plan.parameters = b"{\"settings\":{}}".to_vec();
        plan.splits = vec![Split::whole("in.txt".as_ref(), 7).into()];
        plan.cuts = vec![vec![0, 255, 16]];
        plan.reduces = 2;
        GuestPlan::of(JobId(3), &plan).expect("its parameters are text")
    }

    #[test]
    fn plan_round_trips_with_its_format() {
        let text = plan().to_json().expect("it can be written");
        assert_eq!(GuestPlan::from_json(&text).expect("it can be read"), plan());
        let text = String::from_utf8(text).expect("text");
        for expected in [
            "\"format\": \"napreduce-guest-plan/1\"",
            "\"job\": \"job_0003\"",
            "\"00ff10\"",
            "\"path\": \"in.txt\"",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn text_other_than_plan_is_rejected() {
        let text = String::from_utf8(plan().to_json().expect("it can be written")).expect("text");
        for (from, to, says) in [
            (
                "plan/1",
                "plan/3",
                "its format is \"napreduce-guest-plan/3\", but this program reads",
            ),
            (
                "plan/1",
                "plan/2",
                "its format is \"napreduce-guest-plan/2\", but this program reads",
            ),
            ("\"00ff10\"", "\"00ff1\"", "invalid key \"00ff1\""),
            ("\"00ff10\"", "\"é0\"", "invalid key"),
            (
                "job_0003",
                "job-3",
                "invalid job \"job-3\"; write it as job_0007",
            ),
            ("{", "", "invalid JSON: "),
        ] {
            let error = GuestPlan::from_json(text.replacen(from, to, 1).as_bytes()).expect_err(to);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn plan_with_checkpoints_has_newer_version() {
        let saving = plan().saving(GuestCheckpoints {
            directory: "c/x".into(),
            interval_millis: 60_000,
        });
        let text = saving.to_json().expect("it can be written");
        assert_eq!(GuestPlan::from_json(&text).expect("it can be read"), saving);
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.contains("\"format\": \"napreduce-guest-plan/2\""),
            "{text}"
        );
        assert!(text.contains("\"directory\": \"c/x\""), "{text}");
        let error = GuestPlan::from_json(text.replacen("plan/2", "plan/1", 1).as_bytes());
        assert!(error.is_err_and(|error| error.to_string().contains("plan/1")));
    }

    #[test]
    fn non_utf8_parameters_are_rejected() {
        let plan = JobPlan {
            parameters: vec![0xff],
            ..JobPlan::new("sort", "out")
        };
        assert_eq!(
            GuestPlan::of(JobId(1), &plan).expect_err("no text"),
            "the parameters of sort are not UTF-8"
        );
    }
}
