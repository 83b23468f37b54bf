//! Tasks and their live attempts.
//!
//! Owns the names of the fields. Does not own attempts that have ended (`jobs`).

use napreduce_protocol::{JobDetail, LiveAttempt, TaskSummary};

use super::jobs::HistoryAnswer;

answer! {
    /// A task, and what happened to its attempts.
    pub struct TaskStatusAnswer {
        #[serde(flatten)]
        pub task: TaskAnswer = task.into(),
        /// Likewise as of a job; events are those of the job as a whole, and none of them is here.
        pub history: HistoryAnswer = of_its_attempts.into(),
    }

    pub fn new(task: &TaskSummary, of_its_attempts: &JobDetail);
}

answer! {
    /// A task in a listing.
    pub struct TaskAnswer from |task: &TaskSummary| {
        pub task: String = task.task.to_string(),
        /// `pending`, `active`, `suspended`, `checkpointed` or `done`.
        pub state: String = task.state.to_string(),
        /// Why it is suspended or checkpointed, and who wanted that.
        pub reason: Option<String> = task.reason.clone(),
        /// How many attempts were launched.
        pub attempts: u32 = task.attempts,
        pub live: Vec<LiveAnswer> = task.live.iter().map(LiveAnswer::from).collect(),
    }

    /// A live attempt.
    pub struct LiveAnswer from |live: &LiveAttempt| {
        pub attempt: String = live.attempt.to_string(),
        pub worker: String = live.worker.to_string(),
        pub state: String = live.state.to_string(),
        /// Why it is to give or gave up its slot, and who wanted that.
        pub reason: Option<String> = live.reason.clone(),
        pub bytes_done: u64 = live.bytes_done,
        /// 0 while unknown.
        pub bytes_total: u64 = live.bytes_total,
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, AttemptState, JobId, TaskId, TaskKind, WorkerId};
    use napreduce_protocol::TaskPhase;

    use super::*;

    #[test]
    fn a_task_is_an_object_with_its_live_attempts() {
        let task = TaskId { job: JobId(7), kind: TaskKind::Map, index: 1 };
        let live = LiveAttempt {
            attempt: AttemptId { task, number: 2 },
            worker: WorkerId(1),
            state: AttemptState::Running,
            reason: None,
            bytes_done: 50,
            bytes_total: 200,
        };
        let summary =
            TaskSummary { task, state: TaskPhase::Active, reason: None, attempts: 2, live: vec![live] };
        assert_eq!(
            serde_json::to_value(TaskAnswer::from(&summary)).expect("JSON").to_string(),
            r#"{"attempts":2,"live":[{"attempt":"job_0007_m_0001.2","bytes_done":50,"bytes_total":200,"reason":null,"state":"running","worker":"worker_0001"}],"reason":null,"state":"active","task":"job_0007_m_0001"}"#
        );
    }
}
