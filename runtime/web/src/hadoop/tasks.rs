//! Tasks and their attempts, as MapReduce's history server describes them.
//!
//! Owns these objects. Does not own where an attempt is (`crate::foreign`).

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_protocol::{AttemptSummary, JobDetail};

use crate::foreign::{Naptimes, TriedState, attempt_id, container_id, task_id};

answer! {
    /// `task`
    #[serde(rename_all = "camelCase")]
    pub struct TaskOfHistory {
        pub start_time: u64 = start_time,
        pub finish_time: u64 = finish_time,
        pub elapsed_time: u64 = until.saturating_sub(start_time),
        /// Per cent: 0 or 100, as only the whole job tells more.
        pub progress: f64 = if done.is_some() { 100.0 } else { 0.0 },
        pub id: String = task_id(task),
        pub state: TriedState = state,
        #[serde(rename = "type")]
        pub kind: &'static str = kind_in_words(task.kind),
        /// Empty while there is none.
        pub successful_attempt: String = done.map(|attempt| attempt_id(attempt.attempt)).unwrap_or_default(),
        #[serde(skip)]
        #[schemars(skip)]
        pub task: TaskId = task,
    }

    fn of(task: TaskId, attempts: &[&AttemptSummary], now_millis: u64) {
        let in_state = |state| attempts.iter().rfind(|attempt| TriedState::of(attempt) == state);
        let done = in_state(TriedState::Succeeded);
        let state = match (done, in_state(TriedState::Running), in_state(TriedState::Failed)) {
            (Some(_), _, _) => TriedState::Succeeded,
            (None, Some(_), _) => TriedState::Running,
            (None, None, Some(_)) => TriedState::Failed,
            (None, None, None) => TriedState::Scheduled,
        };
        let start_time = attempts.iter().map(|attempt| attempt.launched_millis).min().unwrap_or(0);
        let finish_time = done.and_then(|attempt| attempt.ended_millis).unwrap_or(0);
        let until = if finish_time == 0 { now_millis } else { finish_time };
    }
}

answer! {
    /// `taskAttempt`; the last five are of reduces.
    #[serde(rename_all = "camelCase")]
    pub struct TriedTask {
        pub assigned_container_id: String = container_id(attempt.attempt),
        pub progress: f64 = if state == TriedState::Succeeded { 100.0 } else { 0.0 },
        pub elapsed_time: u64 = elapsed_time,
        pub state: TriedState = state,
        /// How it ended, if it was not done.
        pub diagnostics: String = attempt.end.clone().filter(|end| end != "done").unwrap_or_default(),
        pub rack: &'static str = "/default-rack",
        pub node_http_address: String = attempt.worker_name.clone(),
        pub start_time: u64 = start_time,
        pub finish_time: u64 = attempt.ended_millis.unwrap_or(0),
        pub id: String = attempt_id(attempt.attempt),
        #[serde(rename = "type")]
        pub kind: &'static str = kind_in_words(task.kind),
        /// Milliseconds for which it was suspended.
        pub naptime: u64 = naptimes.millis(attempt.attempt),
        #[serde(flatten)]
        pub reduce: Option<ReduceTimes> =
            (task.kind == TaskKind::Reduce).then(|| ReduceTimes::of(start_time, elapsed_time, shuffle)),
    }

    fn of(attempt: &AttemptSummary, naptimes: &Naptimes, now_millis: u64) {
        let (state, task) = (TriedState::of(attempt), attempt.attempt.task);
        let start_time = attempt.launched_millis;
        let elapsed_time = attempt.ended_millis.unwrap_or(now_millis).saturating_sub(start_time);
        let shuffle = attempt.figures.map_or(0, |figures| figures.shuffle_millis.min(elapsed_time));
    }
}

answer! {
    /// What a reduce took for its parts: it waited for outputs of maps, and merged and reduced at once. One
    /// that has not done its task has reduced all the time, as far as is known.
    #[serde(rename_all = "camelCase")]
    pub struct ReduceTimes {
        pub shuffle_finish_time: u64 = start_time + shuffle,
        pub merge_finish_time: u64 = start_time + shuffle,
        pub elapsed_shuffle_time: u64 = shuffle,
        pub elapsed_merge_time: u64,
        pub elapsed_reduce_time: u64 = elapsed_time - shuffle,
    }

    fn of(start_time: u64, elapsed_time: u64, shuffle: u64);
}

fn kind_in_words(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Map => "MAP",
        TaskKind::Reduce => "REDUCE",
    }
}

/// The tasks of a job of which an attempt was ever launched, maps first.
pub fn tasks_of(job: &JobDetail, now_millis: u64) -> Vec<TaskOfHistory> {
    let mut attempts: BTreeMap<TaskId, Vec<&AttemptSummary>> = BTreeMap::new();
    for attempt in &job.attempts {
        attempts.entry(attempt.attempt.task).or_default().push(attempt);
    }
    attempts.into_iter().map(|(task, attempts)| TaskOfHistory::of(task, &attempts, now_millis)).collect()
}

impl TriedTask {
    /// The attempts of a task, in the order in which they were launched.
    pub fn all_of(job: &JobDetail, task: TaskId, now_millis: u64) -> Vec<(AttemptId, TriedTask)> {
        let naptimes = Naptimes::of(job, now_millis);
        let of_task = job.attempts.iter().filter(|attempt| attempt.attempt.task == task);
        of_task.map(|attempt| (attempt.attempt, TriedTask::of(attempt, &naptimes, now_millis))).collect()
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive, WorkerId};
    use napreduce_protocol::{AttemptFigures, PreemptionEnd, PreemptionSummary};

    use super::super::super::answers::samples::detail;
    use super::*;

    const BASE: u64 = 1_790_000_000_000;

    /// A reduce that fails, and is tried again: suspended after a second, and not yet resumed.
    fn job() -> JobDetail {
        let mut job = detail();
        let task = TaskId { job: JobId(7), kind: TaskKind::Reduce, index: 0 };
        let lived = |number, from: u64, ended: Option<u64>, end: Option<&str>| AttemptSummary {
            attempt: AttemptId { task, number },
            worker: WorkerId(2),
            worker_name: "left-hand".to_owned(),
            launched_millis: BASE + from,
            ended_millis: ended.map(|ended| BASE + ended),
            end: end.map(str::to_owned),
            figures: None,
            moments: None,
        };
        job.attempts = vec![lived(1, 0, Some(500), Some("failed: bad row")), lived(2, 600, None, None)];
        let micros = |millis: u64| (BASE + millis) * 1_000;
        let second = AttemptId { task, number: 2 };
        let wanted = PreemptionSummary::wanted(micros(1_500), second, WorkerId(2), Primitive::Suspend);
        job.preemptions = vec![PreemptionSummary {
            freed_micros: Some(micros(1_600)),
            end: Some(PreemptionEnd::Suspended),
            ..wanted
        }];
        job
    }

    #[test]
    fn a_task_is_where_its_attempts_are() {
        let mut job = job();
        let states = |job: &JobDetail| {
            tasks_of(job, BASE + 2_600)
                .into_iter()
                .map(|task| (task.state, task.elapsed_time, task.successful_attempt))
                .collect::<Vec<_>>()
        };
        assert_eq!(states(&job), [(TriedState::Running, 2_600, String::new())]);
        job.attempts[1].end = Some("done".to_owned());
        job.attempts[1].ended_millis = Some(BASE + 2_000);
        assert_eq!(states(&job), [(TriedState::Succeeded, 2_000, "attempt_0_0007_r_000000_1".to_owned())]);
        job.attempts.truncate(1);
        assert_eq!(states(&job), [(TriedState::Failed, 2_600, String::new())]);
        job.attempts[0].end = Some("worker_0002 was lost".to_owned());
        assert_eq!(states(&job), [(TriedState::Scheduled, 2_600, String::new())]);
    }

    #[test]
    fn a_suspended_attempt_runs_and_says_for_how_long_it_naps() {
        let job = job();
        let task = job.attempts[0].attempt.task;
        let tried = TriedTask::all_of(&job, task, BASE + 2_600);
        let second = serde_json::to_value(&tried[1].1).expect("JSON");
        for (field, value) in [
            ("id", "\"attempt_0_0007_r_000000_1\""),
            ("state", "\"RUNNING\""),
            ("naptime", "1000"),
            ("elapsedReduceTime", "2000"),
            ("type", "\"REDUCE\""),
            ("finishTime", "0"),
        ] {
            assert_eq!(second[field].to_string(), value, "{field}");
        }
        let mut done = job.clone();
        (done.attempts[1].end, done.attempts[1].ended_millis) = (Some("done".to_owned()), Some(BASE + 2_600));
        done.attempts[1].figures = Some(AttemptFigures { shuffle_millis: 700, ..AttemptFigures::default() });
        let told = serde_json::to_value(&TriedTask::all_of(&done, task, BASE + 9_000)[1].1).expect("JSON");
        assert_eq!((&told["elapsedShuffleTime"], &told["elapsedReduceTime"]), (&700.into(), &1_300.into()));
        assert_eq!(told["shuffleFinishTime"], BASE + 600 + 700);
        let first = &tried[0].1;
        assert_eq!((first.state, first.diagnostics.as_str()), (TriedState::Failed, "failed: bad row"));
        assert_eq!((first.naptime, first.elapsed_time), (0, 500));
    }
}
