//! Hadoop's dialect: `/ws/v1/cluster` as a ResourceManager answers, `/ws/v1/history` as MapReduce's history
//! server does.
//!
//! Owns its routes, and how it refuses. Does not own the objects (`crate::hadoop`).

mod mapreduce;
mod selection;
mod wrapped;
mod yarn;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use super::route::{Answering, Dialect, QueryField, Route, field, json, read, takes};
use crate::guard::WebRole;
use crate::problem::Problem;
use wrapped::{
    App, AppAttemptList, AppList, AppPriority, AppQueue, AppStat, AppStateAnswer, AppStateWanted, Cluster,
    Conf, Counters, CountersOfAttempt, CountersOfTask, History, Job, JobAttemptList, JobList, Metrics, Node,
    NodeList, SchedulerAnswer, Task, TaskAttempt, TaskAttemptList, TaskList,
};

/// What Hadoop says when it refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemoteException {
    #[serde(rename = "RemoteException")]
    pub exception: RemoteExceptionBody,
}

/// Its names, and our words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteExceptionBody {
    pub exception: &'static str,
    pub message: String,
    pub java_class_name: String,
}

pub fn remote_exception(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (package, exception) = match status {
        StatusCode::NOT_FOUND => ("org.apache.hadoop.yarn.webapp", "NotFoundException"),
        StatusCode::BAD_REQUEST => ("org.apache.hadoop.yarn.webapp", "BadRequestException"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ("org.apache.hadoop.security.authorize", "AuthorizationException")
        }
        _ => ("org.apache.hadoop.yarn.exceptions", "YarnException"),
    };
    let message = problem.in_a_line();
    let java_class_name = format!("{package}.{exception}");
    let told = RemoteException { exception: RemoteExceptionBody { exception, message, java_class_name } };
    // It has nothing in it that JSON cannot say.
    let body = serde_json::to_vec(&told).unwrap_or_default();
    (status, [(CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}

const STATES: QueryField = field("states", "only these, separated by commas");
const TYPES: QueryField = field("applicationTypes", "only these; all are MAPREDUCE");

const APPS: &[QueryField] = &[
    field("state", "only this one"),
    STATES,
    field("finalStatus", "only with this one"),
    field("user", "only of this user"),
    field("queue", "only of this queue"),
    field("name", "only of this name"),
    TYPES,
    field("applicationTags", "only with one of these; none has any"),
    LIMIT,
    STARTED_BEGIN,
    STARTED_END,
    FINISHED_BEGIN,
    FINISHED_END,
];
const JOBS: &[QueryField] = &[
    field("state", "only in this state"),
    field("user", "only of this user"),
    field("queue", "only of this queue"),
    LIMIT,
    STARTED_BEGIN,
    STARTED_END,
    FINISHED_BEGIN,
    FINISHED_END,
];
const LIMIT: QueryField = field("limit", "how many, newest first");
const STARTED_BEGIN: QueryField =
    field("startedTimeBegin", "submitted then or later, in milliseconds since 1970");
const STARTED_END: QueryField = field("startedTimeEnd", "submitted then or earlier");
const FINISHED_BEGIN: QueryField = field("finishedTimeBegin", "ended then or later");
const FINISHED_END: QueryField = field("finishedTimeEnd", "ended then or earlier");

const fn ask<Gives: JsonSchema>(path: &'static str, about: &'static str, answer: Answering) -> Route {
    read::<Gives>(Dialect::Hadoop, path, about, answer)
}

/// All of them.
pub static ROUTES: &[Route] = &[
    ask::<Cluster>("/ws/v1/cluster", "YARN: the cluster", yarn::info),
    ask::<Cluster>("/ws/v1/cluster/info", "YARN: the cluster", yarn::info),
    ask::<Metrics>("/ws/v1/cluster/metrics", "YARN: how much of it is in use", yarn::metrics),
    ask::<SchedulerAnswer>("/ws/v1/cluster/scheduler", "YARN: the scheduler and its queues", yarn::scheduler),
    ask::<AppList>("/ws/v1/cluster/apps", "YARN: the jobs", yarn::apps).asking(APPS),
    ask::<AppStat>(
        "/ws/v1/cluster/appstatistics",
        "YARN: how many jobs are in which state",
        yarn::statistics,
    )
    .asking(&[STATES, TYPES]),
    ask::<App>("/ws/v1/cluster/apps/{job}", "YARN: a job", yarn::app),
    ask::<AppAttemptList>(
        "/ws/v1/cluster/apps/{job}/appattempts",
        "YARN: the one try at it",
        yarn::app_attempts,
    ),
    ask::<AppStateAnswer>("/ws/v1/cluster/apps/{job}/state", "YARN: its state", yarn::state),
    Route {
        method: Method::PUT,
        dialect: Dialect::Hadoop,
        path: "/ws/v1/cluster/apps/{job}/state",
        role: WebRole::Operate,
        about: "YARN: kills it",
        query: &[],
        takes: takes::<AppStateWanted>(),
        gives: json::<AppStateAnswer>(),
        answer: yarn::kill,
        is_instant: false,
    },
    ask::<AppQueue>("/ws/v1/cluster/apps/{job}/queue", "YARN: its queue", yarn::queue),
    ask::<AppPriority>("/ws/v1/cluster/apps/{job}/priority", "YARN: its priority", yarn::priority),
    ask::<NodeList>("/ws/v1/cluster/nodes", "YARN: the workers", yarn::nodes).asking(&[STATES]),
    ask::<Node>("/ws/v1/cluster/nodes/{worker}", "YARN: a worker", yarn::node),
    ask::<History>("/ws/v1/history", "MapReduce: the server", mapreduce::info),
    ask::<History>("/ws/v1/history/info", "MapReduce: the server", mapreduce::info),
    ask::<JobList>("/ws/v1/history/mapreduce/jobs", "MapReduce: the jobs", mapreduce::jobs).asking(JOBS),
    ask::<Job>("/ws/v1/history/mapreduce/jobs/{job}", "MapReduce: a job", mapreduce::job),
    ask::<JobAttemptList>(
        "/ws/v1/history/mapreduce/jobs/{job}/jobattempts",
        "MapReduce: the one try at it",
        mapreduce::job_attempts,
    ),
    ask::<Counters>(
        "/ws/v1/history/mapreduce/jobs/{job}/counters",
        "MapReduce: what it has counted",
        mapreduce::counters,
    ),
    ask::<Conf>(
        "/ws/v1/history/mapreduce/jobs/{job}/conf",
        "MapReduce: what is known of its settings",
        mapreduce::conf,
    ),
    ask::<TaskList>(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks",
        "MapReduce: its tasks that were ever begun",
        mapreduce::tasks,
    )
    .asking(&[field("type", "m or r")]),
    ask::<Task>("/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}", "MapReduce: a task", mapreduce::task),
    ask::<CountersOfTask>(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/counters",
        "MapReduce: nothing, as counters are kept of jobs",
        mapreduce::task_counters,
    ),
    ask::<TaskAttemptList>(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts",
        "MapReduce: its attempts",
        mapreduce::attempts,
    ),
    ask::<TaskAttempt>(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts/{attempt}",
        "MapReduce: an attempt",
        mapreduce::attempt,
    ),
    ask::<CountersOfAttempt>(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts/{attempt}/counters",
        "MapReduce: nothing, as counters are kept of jobs",
        mapreduce::attempt_counters,
    ),
];
