//! Topics of event streams.

use std::str::FromStr;

use napreduce_engine::JobId;

/// The most topics of a stream; a browser sends one for each of its tabs.
const TOPICS_MAX: usize = 64;

/// A topic of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The status of the cluster.
    Cluster,
    /// All jobs, as listed.
    Jobs,
    /// A job with its attempts and preemptions.
    Job(JobId),
    /// The preemptions of all jobs.
    Preemptions,
    /// Used and wanted slots of the queues.
    Shares,
    Workers,
}

impl FromStr for Topic {
    type Err = String;

    fn from_str(text: &str) -> Result<Topic, String> {
        match text {
            "cluster" => Ok(Topic::Cluster),
            "jobs" => Ok(Topic::Jobs),
            "preemptions" => Ok(Topic::Preemptions),
            "shares" => Ok(Topic::Shares),
            "workers" => Ok(Topic::Workers),
            other => match other.strip_prefix("job:") {
                Some(job) => job
                    .parse()
                    .map(Topic::Job)
                    .map_err(|error: <JobId as FromStr>::Err| error.to_string()),
                None => Err(format!(
                    "unknown topic {other:?}; expected cluster, jobs, job:job_0007, preemptions, shares or workers"
                )),
            },
        }
    }
}

/// The topics of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics(Vec<Topic>);

impl Topics {
    pub fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.0.iter()
    }

    pub fn contains(&self, topic: &Topic) -> bool {
        self.0.contains(topic)
    }
}

impl Default for Topics {
    fn default() -> Topics {
        Topics(vec![Topic::Cluster, Topic::Jobs, Topic::Workers])
    }
}

impl FromStr for Topics {
    type Err = String;

    fn from_str(text: &str) -> Result<Topics, String> {
        let topics: Vec<Topic> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match topics.len() {
            0..=TOPICS_MAX => Ok(Topics(topics)),
            more => Err(format!("too many topics: {more} (limit {TOPICS_MAX})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_separated_by_commas() {
        let topics: Topics = "cluster,job:job_0007,workers".parse().expect("topics");
        assert_eq!(
            topics,
            Topics(vec![Topic::Cluster, Topic::Job(JobId(7)), Topic::Workers])
        );
        assert!(topics.contains(&Topic::Workers) && !topics.contains(&Topic::Jobs));
        for wrong in ["", "cluster,", "share", "job:7", "Cluster"] {
            assert!(wrong.parse::<Topics>().is_err(), "{wrong:?}");
        }
        assert!(vec!["jobs"; TOPICS_MAX].join(",").parse::<Topics>().is_ok());
        let many = vec!["jobs"; TOPICS_MAX + 1].join(",").parse::<Topics>();
        assert_eq!(many, Err("too many topics: 65 (limit 64)".to_owned()));
    }
}
