//! Hadoop's dialect: `/ws/v1/cluster` as a ResourceManager answers, `/ws/v1/history` as MapReduce's history server does.
//!
//! Owns its routes, and how it refuses. Does not own the objects (`crate::hadoop`).

mod mapreduce;
mod selection;
mod wrapped;
mod yarn;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::call::{Call, Reply};
use super::route::{Answer, Dialect, QueryField, Route, field, json};
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
    let message = match &problem.remedy {
        Some(remedy) => format!("{}; {remedy}", problem.detail),
        None => problem.detail.clone(),
    };
    let java_class_name = format!("{package}.{exception}");
    let told = RemoteException { exception: RemoteExceptionBody { exception, message, java_class_name } };
    // It has nothing in it that JSON cannot say.
    let mut response = Response::new(Body::from(serde_json::to_vec(&told).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

const fn ask(
    path: &'static str,
    about: &'static str,
    query: &'static [QueryField],
    gives: Answer,
    answer: fn(&Call<'_>) -> Result<Reply, Problem>,
) -> Route {
    Route {
        method: Method::GET,
        dialect: Dialect::Hadoop,
        path,
        role: WebRole::View,
        about,
        query,
        takes: None,
        gives,
        answer,
    }
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

/// All of them.
pub static ROUTES: &[Route] = &[
    ask("/ws/v1/cluster", "YARN: the cluster", &[], json::<Cluster>(), yarn::info),
    ask("/ws/v1/cluster/info", "YARN: the cluster", &[], json::<Cluster>(), yarn::info),
    ask("/ws/v1/cluster/metrics", "YARN: how much of it is in use", &[], json::<Metrics>(), yarn::metrics),
    ask(
        "/ws/v1/cluster/scheduler",
        "YARN: the scheduler and its queues",
        &[],
        json::<SchedulerAnswer>(),
        yarn::scheduler,
    ),
    ask("/ws/v1/cluster/apps", "YARN: the jobs", APPS, json::<AppList>(), yarn::apps),
    ask(
        "/ws/v1/cluster/appstatistics",
        "YARN: how many jobs are in which state",
        &[STATES, TYPES],
        json::<AppStat>(),
        yarn::statistics,
    ),
    ask("/ws/v1/cluster/apps/{job}", "YARN: a job", &[], json::<App>(), yarn::app),
    ask(
        "/ws/v1/cluster/apps/{job}/appattempts",
        "YARN: the one try at it",
        &[],
        json::<AppAttemptList>(),
        yarn::app_attempts,
    ),
    ask("/ws/v1/cluster/apps/{job}/state", "YARN: its state", &[], json::<AppStateAnswer>(), yarn::state),
    Route {
        method: Method::PUT,
        dialect: Dialect::Hadoop,
        path: "/ws/v1/cluster/apps/{job}/state",
        role: WebRole::Operate,
        about: "YARN: kills it",
        query: &[],
        takes: Some(|generator| generator.subschema_for::<AppStateWanted>()),
        gives: json::<AppStateAnswer>(),
        answer: yarn::kill,
    },
    ask("/ws/v1/cluster/apps/{job}/queue", "YARN: its queue", &[], json::<AppQueue>(), yarn::queue),
    ask(
        "/ws/v1/cluster/apps/{job}/priority",
        "YARN: its priority",
        &[],
        json::<AppPriority>(),
        yarn::priority,
    ),
    ask("/ws/v1/cluster/nodes", "YARN: the workers", &[STATES], json::<NodeList>(), yarn::nodes),
    ask("/ws/v1/cluster/nodes/{worker}", "YARN: a worker", &[], json::<Node>(), yarn::node),
    ask("/ws/v1/history", "MapReduce: the server", &[], json::<History>(), mapreduce::info),
    ask("/ws/v1/history/info", "MapReduce: the server", &[], json::<History>(), mapreduce::info),
    ask("/ws/v1/history/mapreduce/jobs", "MapReduce: the jobs", JOBS, json::<JobList>(), mapreduce::jobs),
    ask("/ws/v1/history/mapreduce/jobs/{job}", "MapReduce: a job", &[], json::<Job>(), mapreduce::job),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/jobattempts",
        "MapReduce: the one try at it",
        &[],
        json::<JobAttemptList>(),
        mapreduce::job_attempts,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/counters",
        "MapReduce: what it has counted",
        &[],
        json::<Counters>(),
        mapreduce::counters,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/conf",
        "MapReduce: what is known of its settings",
        &[],
        json::<Conf>(),
        mapreduce::conf,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks",
        "MapReduce: its tasks that were ever begun",
        &[field("type", "m or r")],
        json::<TaskList>(),
        mapreduce::tasks,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}",
        "MapReduce: a task",
        &[],
        json::<Task>(),
        mapreduce::task,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/counters",
        "MapReduce: nothing, as counters are kept of jobs",
        &[],
        json::<CountersOfTask>(),
        mapreduce::task_counters,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts",
        "MapReduce: its attempts",
        &[],
        json::<TaskAttemptList>(),
        mapreduce::attempts,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts/{attempt}",
        "MapReduce: an attempt",
        &[],
        json::<TaskAttempt>(),
        mapreduce::attempt,
    ),
    ask(
        "/ws/v1/history/mapreduce/jobs/{job}/tasks/{task}/attempts/{attempt}/counters",
        "MapReduce: nothing, as counters are kept of jobs",
        &[],
        json::<CountersOfAttempt>(),
        mapreduce::attempt_counters,
    ),
];
