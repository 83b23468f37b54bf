//! Totals over HTTP are computed from all jobs of a history, not from a page or from the newest jobs.

use std::path::Path;
use std::sync::Arc;

use crate::kit::{Answer, asking, summary};
use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{EndedJob, write_simulated};
use napreduce_protocol::{
    AttemptSummary, JobDetail, JobEnd, JobPhase, JobProgress, JobSummary, PhaseProgress,
    PreemptionEnd, PreemptionSummary, Secret,
};
use napreduce_web::{HistorySource, WebRole, WebServer, WebSettings, token};
use serde_json::{Value, json};
use tempfile::TempDir;

const BASE: u64 = 1_790_000_000_000;
/// Jobs; job 1 lost most slots and is older than the sixty others.
const JOBS: u32 = 61;
const TAKEN: [u32; 2] = [3_480, 1];
const PREEMPTIONS: u64 = 3_540;
const TASKS: u32 = 100_040;

fn job(number: u32) -> JobDetail {
    let (tasks, taken) = if number == 1 {
        (TASKS, TAKEN[0])
    } else {
        (2, TAKEN[1])
    };
    let id = |index| TaskId {
        job: JobId(number),
        kind: TaskKind::Map,
        index,
    };
    let map = PhaseProgress {
        tasks,
        done: tasks,
        ..PhaseProgress::default()
    };
    let submitted_millis = BASE + u64::from(number) * 1_000;
    let summary = JobSummary {
        name: "count".to_owned(),
        queue: if number == 1 {
            "research"
        } else {
            "production"
        }
        .to_owned(),
        submitted_millis,
        ended_millis: Some(submitted_millis + 500),
        progress: JobProgress {
            map,
            ..JobProgress::default()
        },
        ..summary(number, JobPhase::Succeeded)
    };
    let attempt = |index| AttemptSummary {
        attempt: AttemptId {
            task: id(index),
            number: 1,
        },
        worker: WorkerId(index % 7 + 1),
        worker_name: format!("machine-{}", index % 7),
        launched_millis: submitted_millis + 100,
        ended_millis: Some(submitted_millis + 400),
        end: Some("succeeded".to_owned()),
        figures: None,
        moments: None,
    };
    let preempted = |index: u32| {
        let requested = (submitted_millis + 200) * 1_000 + u64::from(index);
        let victim = AttemptId {
            task: id(index % tasks),
            number: 1,
        };
        PreemptionSummary {
            by: "natjam".to_owned(),
            freed_micros: Some(requested + 4_000),
            end: Some(PreemptionEnd::Suspended),
            work_saved_millis: 10,
            work_lost_millis: 1,
            ..PreemptionSummary::wanted(requested, victim, WorkerId(1), Primitive::Suspend)
        }
    };
    JobDetail {
        attempts: (0..tasks).map(attempt).collect(),
        preemptions: (0..taken).map(preempted).collect(),
        ..JobDetail::new(summary)
    }
}

struct Recording {
    server: WebServer,
    secret: Secret,
    _folder: TempDir,
}

impl Recording {
    fn start() -> Recording {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 1..=JOBS {
            write(folder.path(), job(number));
        }
        let secret = Secret::from_bytes([3; 32]);
        let address = "127.0.0.1:0".parse().expect("an address");
        let settings = WebSettings {
            address,
            requests_max: 10_000,
            ..WebSettings::new(secret.clone())
        };
        let source = HistorySource::open(folder.path()).expect("a history");
        let server = WebServer::start(&settings, Arc::new(source)).expect("a server");
        Recording {
            server,
            secret,
            _folder: folder,
        }
    }

    fn ask(&self, path: &str) -> Answer {
        let token = token(&self.secret, WebRole::View, "tester", 1).expect("a token");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            self.server.address()
        );
        asking(self.server.address(), request.as_bytes())
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask(&format!("/api/nap/v1/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }
}

fn write(folder: &Path, detail: JobDetail) {
    let end = JobEnd::Killed {
        job: detail.summary.job,
        reason: String::new(),
    };
    let ended = EndedJob {
        token: 1,
        end,
        detail,
        cluster: None,
        logs: Vec::new(),
    };
    write_simulated(folder, &ended).expect("a history");
}

fn sum(items: &Value, field: &str) -> u64 {
    items
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item[field].as_u64())
        .sum()
}

/// The server counts for two seconds per request and continues in the next; the first answer of a slow
/// machine may be incomplete.
fn whole(recording: &Recording, path: &str) -> Value {
    loop {
        let answer = recording.get(path);
        let remarks = answer["remarks"].as_array().expect("remarks");
        if remarks.is_empty() {
            return answer;
        }
        assert!(remarks.iter().all(|one| {
            one.as_str()
                .is_some_and(|text| text.contains("not counted yet"))
        }));
    }
}

#[test]
fn totals_match_the_whole_history() {
    let recording = Recording::start();
    let totals = whole(&recording, "preemptions/totals?from=0");
    assert_eq!(
        (&totals["count"], &totals["taken"]),
        (&json!(PREEMPTIONS), &json!(PREEMPTIONS))
    );
    assert_eq!(
        (&totals["work_saved_millis"], &totals["work_lost_millis"]),
        (&json!(10 * PREEMPTIONS), &json!(PREEMPTIONS))
    );
    assert_eq!(
        whole(&recording, "preemptions?from=0&limit=1")["total"],
        PREEMPTIONS
    );
    let flows = whole(&recording, "preemptions/flows?from=0&by=job&limit=10000");
    assert_eq!(sum(&flows["items"], "count"), PREEMPTIONS);
    let of_job = recording.get("jobs/job_0001/preemptions/totals");
    assert_eq!(
        (&of_job["count"], &of_job["work_saved_millis"]),
        (&json!(TAKEN[0]), &json!(u64::from(TAKEN[0]) * 10))
    );

    // Each attempt held its slot for 300 ms, less its suspension.
    let shares = whole(&recording, "shares");
    assert_eq!(shares["jobs_left_out"], 0);
    let queues = shares["queues"].as_array().expect("queues");
    assert_eq!(
        queues
            .iter()
            .map(|one| one["queue"].as_str())
            .collect::<Vec<_>>(),
        [Some("production"), Some("research")]
    );
    let step = shares["step_millis"].as_f64().expect("a length");
    for queue in queues {
        let means = |field: &str| {
            let means = queue["map"][field].as_array().expect("means").iter();
            means.filter_map(Value::as_f64).sum::<f64>() * step / 1_000.0
        };
        let attempts = if queue["queue"] == "research" {
            TASKS
        } else {
            2 * (JOBS - 1)
        };
        let slot_seconds = means("held") + means("suspended");
        let expected = f64::from(attempts) * 0.3;
        // An attempt that never resumed is suspended until its job ends.
        assert!(
            (expected..expected * 1.1).contains(&slot_seconds),
            "{queue}: {slot_seconds}"
        );
    }

    let metrics = loop {
        let text = recording.ask("/metrics").body;
        if text.contains("napreduce_jobs_uncounted 0\n") {
            break text;
        }
    };
    for line in [
        format!(
            "napreduce_preemptions_total{{by=\"natjam\",primitive=\"suspend\",end=\"suspended\"}} {PREEMPTIONS}"
        ),
        format!("napreduce_jobs_ended_total{{end=\"succeeded\"}} {JOBS}"),
    ] {
        assert!(
            metrics.lines().any(|known| known == line),
            "{line} is missing in\n{metrics}"
        );
    }
}

#[test]
fn text_filter_matches_values_not_field_names() {
    let recording = Recording::start();
    let found = |list: &str, text: &str| {
        let page = recording.get(&format!("jobs/job_0001/{list}?text={text}&limit=1"));
        (
            page["total"].as_u64().expect("a total"),
            page["items"][0].clone(),
        )
    };
    let (total, attempt) = found("attempts", "m_100039");
    assert_eq!(
        (total, &attempt["attempt"]),
        (1, &json!("job_0001_m_100039.1"))
    );
    let (total, task) = found("tasks", "M_100039");
    assert_eq!((total, &task["task"]), (1, &json!("job_0001_m_100039")));
    let (total, _) = found("attempts", "worker_0003%20(machine-2)");
    assert_eq!(total, u64::from(TASKS).div_ceil(7));
    // A task has the workers and ends of all its attempts.
    let (total, task) = found("tasks", "machine-2");
    assert_eq!(total, u64::from(TASKS).div_ceil(7));
    assert_eq!(task["all_attempts"][0]["worker_name"], "machine-2");
    for (list, name) in [
        ("attempts", "launched_millis"),
        ("attempts", "null"),
        ("tasks", "live"),
    ] {
        assert_eq!(found(list, name).0, 0, "{list} {name}");
    }
}

#[test]
fn task_table_has_counts_medians_and_naps() {
    let recording = Recording::start();
    let page = recording.get("jobs/job_0001/tasks?sort=-naps,task&limit=2");
    assert_eq!(
        (&page["total"], &page["counts"]["all"]),
        (&json!(TASKS), &json!(TASKS))
    );
    assert_eq!(
        (&page["counts"]["running"], &page["counts"]["slow"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(page["median_millis"], json!({ "map": 300, "reduce": null }));
    let first = &page["items"][0];
    assert_eq!(
        (&first["task"], &first["naps"]),
        (&json!("job_0001_m_0000"), &json!(1))
    );
    assert_eq!(
        (&first["took_millis"], &first["worker"]),
        (&json!(300), &json!("worker_0001"))
    );
    for none in ["state=running", "failed=true", "slow=true"] {
        let page = recording.get(&format!("jobs/job_0001/tasks?{none}"));
        assert_eq!(
            (&page["total"], &page["counts"]["all"]),
            (&json!(0), &json!(TASKS)),
            "{none}"
        );
    }
    let thin = recording.get("jobs/job_0001/tasks?fields=task,took_millis&limit=1");
    assert_eq!(
        thin["items"],
        json!([{ "task": "job_0001_m_0000", "took_millis": 300 }])
    );
    let refused = recording.ask("/api/nap/v1/jobs/job_0001/tasks?state=asleep");
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("expected one of waiting, running"),
        "{}",
        refused.body
    );
}

#[test]
fn search_finds_jobs_tasks_queues_and_users() {
    let recording = Recording::start();
    let found = |text: &str| {
        let answer = recording.get(&format!("search?limit=2&text={text}"));
        let items = answer["items"].as_array().expect("items").clone();
        let names = items
            .iter()
            .map(|item| format!("{} {}", item["kind"], item["name"]).replace('"', ""));
        (
            names.collect::<Vec<_>>(),
            answer["total"].as_u64().expect("a total"),
        )
    };
    let one = |name: &str| (vec![name.to_owned()], 1);
    assert_eq!(found("job_0001_m_100039"), one("task job_0001_m_100039"));
    assert_eq!(found("RESEARCH"), one("queue research"));
    assert_eq!(found("61"), one("job job_0061"));
    assert_eq!(found("ada"), one("user ada"));
    let (jobs, total) = found("count");
    assert_eq!((jobs.len(), total), (2, u64::from(JOBS)));
}
