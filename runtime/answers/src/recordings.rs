//! Recordings side by side: the totals of each, and the same jobs in two of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use napreduce_history::{JobOverview, RecordedCluster, WorkerGroup, quantile};
use napreduce_protocol::JobPhase;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The most jobs in a comparison: those that differ most.
const COMPARED_MAX: usize = 1_000;

/// The origin of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingKind {
    /// Given to the server.
    History,
    /// Simulated by a what-if of this server.
    WhatIf,
}

/// The totals of a recording. Times of a simulation count from its start.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecordingAnswer {
    /// Its name in queries.
    pub recording: String,
    pub kind: RecordingKind,
    /// Its location.
    pub place: String,
    /// The policy under which most of its jobs ended.
    pub scheduler: Option<String>,
    /// The primitive with which that policy preempted; `null` if an earlier version wrote the jobs.
    pub primitive: Option<String>,
    /// The settings of that cluster by their names in a configuration file, such as `preemption.suspended-max`, and its
    /// `workers`. Settings of the policy with published values are left out.
    pub settings: BTreeMap<String, String>,
    /// Ended jobs.
    pub jobs: usize,
    pub failed: usize,
    pub killed: usize,
    /// First submission and last end, in milliseconds since 1970.
    pub from_millis: u64,
    pub until_millis: u64,
    pub makespan_millis: u64,
    /// Time from submission to end, over all jobs.
    pub sojourn: SojournAnswer,
    /// Number of slots taken.
    pub preemptions: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

impl RecordingAnswer {
    /// Computes the totals of these jobs.
    pub fn of(
        recording: &str,
        kind: RecordingKind,
        place: String,
        jobs: &[JobOverview],
    ) -> RecordingAnswer {
        let ended = || jobs.iter().filter_map(|job| Some((job, sojourn(job)?)));
        let in_phase = |phase| {
            ended()
                .filter(|(job, _)| job.summary.phase == phase)
                .count()
        };
        let from_millis = ended()
            .map(|(job, _)| job.summary.submitted_millis)
            .min()
            .unwrap_or(0);
        let until_millis = ended()
            .filter_map(|(job, _)| job.summary.ended_millis)
            .max()
            .unwrap_or(0);
        let mut policies: BTreeMap<&str, (usize, &RecordedCluster)> = BTreeMap::new();
        for cluster in ended().filter_map(|(job, _)| job.cluster.as_ref()) {
            policies.entry(&cluster.scheduler).or_insert((0, cluster)).0 += 1;
        }
        let usual = policies
            .into_values()
            .max_by_key(|(jobs, _)| *jobs)
            .map(|(_, cluster)| cluster);
        let settings = usual.map(settings_of).unwrap_or_default();
        let sum = |of: fn(&JobOverview) -> u64| {
            ended().map(|(job, _)| of(job)).fold(0, u64::saturating_add)
        };

        RecordingAnswer {
            recording: recording.to_owned(),
            kind,
            place,
            scheduler: usual.map(|cluster| cluster.scheduler.clone()),
            primitive: settings.get(PRIMITIVE).cloned(),
            settings,
            jobs: ended().count(),
            failed: in_phase(JobPhase::Failed),
            killed: in_phase(JobPhase::Killed),
            from_millis,
            until_millis,
            makespan_millis: until_millis.saturating_sub(from_millis),
            sojourn: SojournAnswer::of(ended().map(|(_, sojourn)| sojourn).collect()),
            preemptions: sum(|job| {
                job.ledger.suspended + job.ledger.checkpointed + job.ledger.killed
            }),
            work_saved_millis: sum(|job| job.ledger.work_saved_millis),
            work_lost_millis: sum(|job| job.ledger.work_lost_millis),
        }
    }
}

/// The setting with the primitive.
const PRIMITIVE: &str = "preemption.primitive";

/// Returns the settings of a cluster by their names in a configuration file; those that are not set are left out.
fn settings_of(cluster: &RecordedCluster) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    add_settings("preemption", &cluster.preemption, &mut settings);
    if let Some(tables) = &cluster.tables {
        add_settings("scheduler", tables, &mut settings);
    }
    let group = |group: &WorkerGroup| {
        format!(
            "{} with {} map and {} reduce slots",
            group.workers, group.map_slots, group.reduce_slots
        )
    };
    if !cluster.workers.is_empty() {
        let groups: Vec<String> = cluster.workers.iter().map(group).collect();
        settings.insert("workers".to_owned(), groups.join(", "));
    }
    settings
}

fn add_settings(name: &str, value: &Value, settings: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(table) => {
            for (inner, value) in table {
                add_settings(&format!("{name}.{inner}"), value, settings);
            }
        }
        Value::String(text) => {
            settings.insert(name.to_owned(), text.clone());
        }
        other => {
            settings.insert(name.to_owned(), other.to_string());
        }
    }
}

/// Returns the names of the settings that differ between these recordings; one without settings is left out.
pub fn differing_settings<'all>(
    recordings: impl Iterator<Item = &'all RecordingAnswer>,
) -> Vec<String> {
    let known: Vec<&BTreeMap<String, String>> = recordings
        .map(|recording| &recording.settings)
        .filter(|settings| !settings.is_empty())
        .collect();
    let names: BTreeSet<&String> = known.iter().flat_map(|settings| settings.keys()).collect();
    let differs = |name: &&&String| {
        let mut values = known.iter().map(|settings| settings.get(**name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect()
}

/// Statistics in milliseconds; 0 without jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct SojournAnswer {
    pub mean: f64,
    pub p50: u64,
    pub p95: u64,
    pub max: u64,
}

/// Two recordings of the same jobs, such as one workload under two policies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonAnswer {
    pub left: RecordingAnswer,
    pub right: RecordingAnswer,
    /// Names of the `settings` that differ.
    pub differing: Vec<String>,
    /// Jobs that differ most first; then those that one recording lacks.
    pub jobs: Vec<ComparedJobAnswer>,
    /// Number of jobs that are not listed.
    pub jobs_left_out: usize,
}

/// A job in both recordings. Jobs of the same name are matched in the order of their submissions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedJobAnswer {
    pub name: String,
    pub left: Option<String>,
    pub right: Option<String>,
    /// Time from submission to end.
    pub left_millis: Option<u64>,
    pub right_millis: Option<u64>,
    /// How much longer it took on the right.
    pub difference_millis: Option<i64>,
}

impl ComparedJobAnswer {
    fn of(
        name: &str,
        left: Option<&JobOverview>,
        right: Option<&JobOverview>,
    ) -> ComparedJobAnswer {
        let id = |job: &JobOverview| job.summary.job.to_string();
        let left_millis = left.and_then(sojourn);
        let right_millis = right.and_then(sojourn);
        let difference =
            |(left, right): (u64, u64)| i64::try_from(i128::from(right) - i128::from(left)).ok();

        ComparedJobAnswer {
            name: name.to_owned(),
            left: left.map(id),
            right: right.map(id),
            left_millis,
            right_millis,
            difference_millis: left_millis.zip(right_millis).and_then(difference),
        }
    }
}

impl SojournAnswer {
    fn of(mut millis: Vec<u64>) -> SojournAnswer {
        millis.sort_unstable();
        let Some(max) = millis.last().copied() else {
            return SojournAnswer::default();
        };
        let total: u128 = millis.iter().map(|one| u128::from(*one)).sum();
        let mean = total as f64 / millis.len() as f64;
        let at = |percent| quantile(&millis, percent).unwrap_or(max);
        SojournAnswer {
            mean,
            p50: at(50),
            p95: at(95),
            max,
        }
    }
}

/// A recording's totals and its jobs.
#[derive(Debug)]
pub struct Recorded<'jobs> {
    pub answer: RecordingAnswer,
    pub jobs: &'jobs [JobOverview],
}
impl ComparisonAnswer {
    /// Compares the jobs of two recordings.
    pub fn of(left: Recorded<'_>, right: Recorded<'_>) -> ComparisonAnswer {
        let mut others: BTreeMap<&str, VecDeque<&JobOverview>> = BTreeMap::new();
        for job in by_submission(right.jobs) {
            others.entry(&job.summary.name).or_default().push_back(job);
        }
        let mut jobs: Vec<ComparedJobAnswer> = Vec::new();
        for job in by_submission(left.jobs) {
            let other = others
                .get_mut(job.summary.name.as_str())
                .and_then(VecDeque::pop_front);
            jobs.push(ComparedJobAnswer::of(&job.summary.name, Some(job), other));
        }
        let alone = others
            .into_iter()
            .flat_map(|(name, jobs)| jobs.into_iter().map(move |job| (name, job)));
        jobs.extend(alone.map(|(name, job)| ComparedJobAnswer::of(name, None, Some(job))));
        jobs.sort_by_key(|job| Reverse(job.difference_millis.map(i64::unsigned_abs)));
        let jobs_left_out = jobs.len().saturating_sub(COMPARED_MAX);
        jobs.truncate(COMPARED_MAX);
        let differing = differing_settings([&left.answer, &right.answer].into_iter());
        ComparisonAnswer {
            left: left.answer,
            right: right.answer,
            differing,
            jobs,
            jobs_left_out,
        }
    }
}

/// Returns the time from submission to end, if the job has ended.
fn sojourn(job: &JobOverview) -> Option<u64> {
    Some(
        job.summary
            .ended_millis?
            .saturating_sub(job.summary.submitted_millis),
    )
}

fn by_submission(jobs: &[JobOverview]) -> Vec<&JobOverview> {
    let mut sorted: Vec<&JobOverview> = jobs.iter().filter(|job| sojourn(job).is_some()).collect();
    sorted.sort_by_key(|job| (job.summary.submitted_millis, job.summary.job));
    sorted
}

#[cfg(test)]
mod tests {
    use napreduce_engine::JobId;
    use napreduce_history::LedgerTotals;
    use napreduce_protocol::{JobProgress, JobSummary};
    use serde_json::json;

    use super::*;

    fn job(number: u32, name: &str, submitted: u64, took: Option<u64>) -> JobOverview {
        JobOverview {
            summary: JobSummary {
                job: JobId(number),
                name: name.to_owned(),
                user: "ada".to_owned(),
                queue: "default".to_owned(),
                priority: 0,
                phase: if took.is_some() {
                    JobPhase::Succeeded
                } else {
                    JobPhase::Running
                },
                reason: None,
                submitted_millis: submitted,
                ended_millis: took.map(|took| submitted + took),
                progress: JobProgress::default(),
                output: "out".into(),
                unrecorded: None,
            },
            ledger: LedgerTotals {
                suspended: 1,
                work_saved_millis: 10,
                ..LedgerTotals::default()
            },
            cluster: Some(RecordedCluster {
                scheduler: "fair".to_owned(),
                ..RecordedCluster::default()
            }),
        }
    }

    #[test]
    fn recording_sums_its_ended_jobs() {
        let jobs = [
            job(1, "a", 1_000, Some(100)),
            job(2, "b", 1_050, Some(300)),
            job(3, "c", 1_060, None),
        ];
        let answer =
            RecordingAnswer::of("one", RecordingKind::History, "a place".to_owned(), &jobs);
        assert_eq!((answer.jobs, answer.failed, answer.killed), (2, 0, 0));
        assert_eq!(
            (
                answer.from_millis,
                answer.until_millis,
                answer.makespan_millis
            ),
            (1_000, 1_350, 350)
        );
        assert_eq!(
            answer.sojourn,
            SojournAnswer {
                mean: 200.0,
                p50: 200,
                p95: 290,
                max: 300
            }
        );
        assert_eq!(
            (
                answer.preemptions,
                answer.work_saved_millis,
                answer.work_lost_millis
            ),
            (2, 20, 0)
        );
        assert_eq!(answer.scheduler.as_deref(), Some("fair"));
        let empty = RecordingAnswer::of("none", RecordingKind::History, String::new(), &[]);
        assert_eq!(
            (empty.jobs, empty.makespan_millis, empty.sojourn),
            (0, 0, SojournAnswer::default())
        );
    }

    #[test]
    fn recording_names_its_primitive_and_settings() {
        let of = |primitive: &str, weight: Option<u32>| {
            let cluster = RecordedCluster {
                scheduler: "fair".to_owned(),
                tables: Some(
                    json!({ "fair": weight.map(|weight| json!({ "pools": { "a": { "weight": weight } } })) }),
                ),
                preemption: json!({ "primitive": primitive, "suspended-max": 2, "convert": null }),
                workers: vec![WorkerGroup {
                    workers: 6,
                    map_slots: 8,
                    reduce_slots: 4,
                }],
            };
            let job = JobOverview {
                cluster: Some(cluster),
                ..job(1, "a", 0, Some(9))
            };
            RecordingAnswer::of(primitive, RecordingKind::History, String::new(), &[job])
        };
        let kill = of("kill", None);
        let suspend = of("suspend", Some(3));
        assert_eq!(kill.primitive.as_deref(), Some("kill"));
        let printed: Vec<String> = suspend
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        assert_eq!(
            printed,
            [
                "preemption.primitive = suspend",
                "preemption.suspended-max = 2",
                "scheduler.fair.pools.a.weight = 3",
                "workers = 6 with 8 map and 4 reduce slots",
            ]
        );
        let differing = differing_settings([&kill, &suspend].into_iter());
        assert_eq!(
            differing,
            ["preemption.primitive", "scheduler.fair.pools.a.weight"]
        );
        assert_eq!(
            differing_settings([&kill, &kill].into_iter()),
            Vec::<String>::new()
        );
        // A recording of an earlier version has no settings.
        let former = RecordingAnswer::of("old", RecordingKind::History, String::new(), &[]);
        assert_eq!(
            differing_settings([&kill, &former].into_iter()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn jobs_of_one_name_are_matched_by_submission() {
        let left = [
            job(1, "a", 0, Some(100)),
            job(2, "a", 5, Some(200)),
            job(3, "only-left", 6, Some(1)),
        ];
        let right = [
            job(9, "a", 7, Some(250)),
            job(8, "a", 0, Some(90)),
            job(7, "only-right", 1, Some(2)),
        ];
        let of = |jobs: &[JobOverview]| {
            RecordingAnswer::of("x", RecordingKind::WhatIf, String::new(), jobs)
        };
        let compared = ComparisonAnswer::of(
            Recorded {
                answer: of(&left),
                jobs: &left,
            },
            Recorded {
                answer: of(&right),
                jobs: &right,
            },
        );
        let rows: Vec<_> = compared
            .jobs
            .iter()
            .map(|job| {
                (
                    job.left.as_deref(),
                    job.right.as_deref(),
                    job.difference_millis,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (Some("job_0002"), Some("job_0009"), Some(50)),
                (Some("job_0001"), Some("job_0008"), Some(-10)),
                (Some("job_0003"), None, None),
                (None, Some("job_0007"), None),
            ]
        );
        assert_eq!(compared.jobs_left_out, 0);
    }
}
