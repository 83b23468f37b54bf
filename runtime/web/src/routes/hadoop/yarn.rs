//! What a ResourceManager is asked.
//!
//! Owns these answers. Does not own the objects (`crate::hadoop`).

use std::collections::HashMap;

use axum::http::StatusCode;
use napreduce_engine::WorkerId;
use napreduce_protocol::JobSummary;

use super::super::call::{Call, Reply};
use super::super::foreign::words;
use super::selection::selected;
use super::wrapped::{
    App, AppAttemptList, AppList, AppPriority, AppQueue, AppStat, AppStateAnswer, AppStateWanted, Cluster,
    Metrics, Node, NodeList, SchedulerAnswer, SchedulerItem,
};
use crate::answers::StatusAnswer;
use crate::clock::now_millis;
use crate::hadoop::{
    AppAttempts, AppState, ClusterInfo, ClusterMetrics, FinalStatus, NodeState, SchedulerInfo, YarnApp,
    YarnNode, count_apps,
};
use crate::problem::Problem;
use crate::source::OperatorCommand;

pub fn info(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&Cluster { it: ClusterInfo::new(call.shown.source.is_live()) })
}

pub fn metrics(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    Reply::json(&Metrics { it: ClusterMetrics::of(&source.workers()?, &source.jobs()?) })
}

pub fn scheduler(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    let metrics = ClusterMetrics::of(&source.workers()?, &source.jobs()?);
    let it = SchedulerInfo::of(&*source.queues()?, &metrics);
    Reply::json(&SchedulerAnswer { it: SchedulerItem { it } })
}

/// Why jobs wait, of the first that do.
fn waiting(call: &Call<'_>, jobs: &[JobSummary]) -> Result<HashMap<String, String>, Problem> {
    let status = StatusAnswer::of(&[], jobs, |job| call.shown.source.explain(job, None))?;
    Ok(status.current.into_iter().filter_map(|current| Some((current.job.job, current.why?))).collect())
}

pub fn apps(call: &Call<'_>) -> Result<Reply, Problem> {
    let mut states = words::<AppState>(call, "states")?;
    states = states.or(words(call, "state")?);
    let status = words::<FinalStatus>(call, "finalStatus")?;
    let is_of_type =
        types_are_ours(call)? && call.asked::<String>("applicationTags")?.is_none_or(|tags| tags.is_empty());
    let jobs = call.shown.source.jobs()?;
    let found = selected(call, &jobs, |job| {
        let of_state = states.as_ref().is_none_or(|states| states.contains(&AppState::of(job)));
        let of_status = status.as_ref().is_none_or(|status| status.contains(&FinalStatus::of(job)));
        of_state && of_status && is_of_type
    })?;
    let mut reasons = waiting(call, &jobs)?;
    let now = now_millis();
    let listed = found.into_iter().map(|job| YarnApp::listed(job, reasons.remove(&job.job.to_string()), now));
    Reply::json(&AppList::from(listed.collect::<Vec<_>>()))
}

fn types_are_ours(call: &Call<'_>) -> Result<bool, Problem> {
    let types = call.asked::<String>("applicationTypes")?;
    let of_ours = |types: String| types.split(',').any(|one| one.trim().eq_ignore_ascii_case("mapreduce"));
    Ok(types.filter(|types| !types.is_empty()).is_none_or(of_ours))
}

pub fn statistics(call: &Call<'_>) -> Result<Reply, Problem> {
    let states = words::<AppState>(call, "states")?;
    let jobs = call.shown.source.jobs()?;
    let jobs = if types_are_ours(call)? { jobs.as_slice() } else { &[] };
    Reply::json(&AppStat::from(count_apps(jobs, states.as_deref())))
}

pub fn app(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let reason = waiting(call, std::slice::from_ref(&job.summary))?.into_values().next();
    Reply::json(&App { it: YarnApp::whole(&job, reason, now_millis()) })
}

pub fn app_attempts(call: &Call<'_>) -> Result<Reply, Problem> {
    let JobSummary { job, submitted_millis, ended_millis, .. } = call.job()?.summary;
    let tried = AppAttempts::of(job, submitted_millis, ended_millis);
    Reply::json(&AppAttemptList::from(vec![tried]))
}

pub fn state(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&AppStateAnswer { it: AppState::of(&call.job()?.summary) })
}

pub fn queue(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&AppQueue { it: call.job()?.summary.queue.clone() })
}

pub fn priority(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&AppPriority { it: call.job()?.summary.priority })
}

/// As YARN does: 202 while it ends, 200 with its state once it has ended.
pub fn kill(call: &Call<'_>) -> Result<Reply, Problem> {
    let wanted: AppStateWanted = call.json()?;
    if wanted.state != "KILLED" {
        return Err(Problem::wrong(format!(
            "an application can be brought to the state KILLED alone, and {:?} is asked for",
            wanted.state
        )));
    }
    let job = call.job()?;
    let now = AppStateAnswer { it: AppState::of(&job.summary) };
    if job.summary.ended_millis.is_some() {
        return Reply::json(&now);
    }
    let reason = format!("asked for by YARN's REST ({})", call.credentials.name);
    call.shown.source.order(&OperatorCommand::KillJob(job.summary.job), &reason)?;
    Ok(Reply::json(&now)?.status(StatusCode::ACCEPTED))
}

pub fn nodes(call: &Call<'_>) -> Result<Reply, Problem> {
    let states = words::<NodeState>(call, "states")?;
    let workers = call.shown.source.workers()?;
    let nodes = workers.iter().map(YarnNode::of);
    let nodes = nodes.filter(|node| states.as_ref().is_none_or(|states| states.contains(&node.state)));
    Reply::json(&NodeList::from(nodes.collect::<Vec<_>>()))
}

pub fn node(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.part::<WorkerId>("worker")?;
    let workers = call.shown.source.workers()?;
    let found = workers.iter().find(|known| known.worker == worker);
    let found = found.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {worker}; see: nap worker list"))
    })?;
    Reply::json(&Node { it: YarnNode::of(found) })
}
