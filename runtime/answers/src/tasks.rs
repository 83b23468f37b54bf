//! Tasks and their live attempts.

use napreduce_protocol::{JobDetail, LiveAttempt, TaskSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::HistoryAnswer;

/// A task with the history of its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskStatusAnswer {
    #[serde(flatten)]
    pub task: TaskAnswer,
    /// The history of its attempts; `events` is empty.
    pub history: HistoryAnswer,
}

impl TaskStatusAnswer {
    pub fn new(task: &TaskSummary, of_its_attempts: &JobDetail) -> TaskStatusAnswer {
        TaskStatusAnswer {
            task: task.into(),
            history: of_its_attempts.into(),
        }
    }
}

/// A task in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskAnswer {
    pub task: String,
    /// `waiting`, `running`, `suspended`, `checkpointed` or `succeeded`.
    pub state: String,
    /// Why and for which job it is suspended or checkpointed.
    pub reason: Option<String>,
    /// Number of launched attempts.
    pub attempts: u32,
    pub live: Vec<LiveAnswer>,
}

impl From<&TaskSummary> for TaskAnswer {
    fn from(task: &TaskSummary) -> TaskAnswer {
        TaskAnswer {
            task: task.task.to_string(),
            state: task.state.to_string(),
            reason: task.reason.clone(),
            attempts: task.attempts,
            live: task.live.iter().map(LiveAnswer::from).collect(),
        }
    }
}

/// A live attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveAnswer {
    pub attempt: String,
    pub worker: String,
    pub state: String,
    pub launched_millis: u64,
    /// Why and for which job it lost or is losing its slot.
    pub reason: Option<String>,
    pub bytes_done: u64,
    /// 0 if unknown.
    pub bytes_total: u64,
}

impl From<&LiveAttempt> for LiveAnswer {
    fn from(live: &LiveAttempt) -> LiveAnswer {
        LiveAnswer {
            attempt: live.attempt.to_string(),
            worker: live.worker.to_string(),
            state: live.state.to_string(),
            launched_millis: live.launched_millis,
            reason: live.reason.clone(),
            bytes_done: live.bytes_done,
            bytes_total: live.bytes_total,
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, AttemptState, JobId, TaskId, TaskKind, WorkerId};
    use napreduce_protocol::TaskPhase;

    use super::*;

    #[test]
    fn task_is_an_object_with_live_attempts() {
        let task = TaskId {
            job: JobId(7),
            kind: TaskKind::Map,
            index: 1,
        };
        let live = LiveAttempt {
            attempt: AttemptId { task, number: 2 },
            worker: WorkerId(1),
            state: AttemptState::Running,
            launched_millis: 1_790_000_000_000,
            reason: None,
            bytes_done: 50,
            bytes_total: 200,
        };
        let summary = TaskSummary {
            task,
            state: TaskPhase::Running,
            reason: None,
            attempts: 2,
            live: vec![live],
        };
        assert_eq!(
            serde_json::to_value(TaskAnswer::from(&summary))
                .expect("JSON")
                .to_string(),
            r#"{"attempts":2,"live":[{"attempt":"job_0007_m_0001.2","bytes_done":50,"bytes_total":200,"launched_millis":1790000000000,"reason":null,"state":"running","worker":"worker_0001"}],"reason":null,"state":"running","task":"job_0007_m_0001"}"#
        );
    }
}
