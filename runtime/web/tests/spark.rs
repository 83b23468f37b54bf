//! Spark's dialect: what scripts and monitors that were written for Spark's monitoring REST get.
//!
//! Owns which fields Spark 4 answers, and what its queries and refusals mean. Does not own what of ours
//! stands in a field (`src/spark`).

mod kit;

use kit::Sample;
use serde_json::{Value, json};

const APPLICATIONS: &str = "/api/v1/applications";
const FIRST: &str = "/api/v1/applications/application_0_0001";
const SECOND: &str = "/api/v1/applications/application_0_0002";

/// The fields of each object that Spark 4.3 has answered about a job that was done. Those of the memory of
/// Java's heaps (`peakMemoryMetrics`, `peakExecutorMetrics`), which it may leave out, are not among them.
const FIELDS: &[(&str, &str, &str)] = &[
    ("version", "", "spark"),
    ("applications", "0", "id name attempts"),
    (
        "applications",
        "0/attempts/0",
        "startTime endTime lastUpdated duration sparkUser completed appSparkVersion startTimeEpoch endTimeEpoch \
         lastUpdatedEpoch",
    ),
    ("", "", "id name attempts"),
    ("jobs", "0", JOB),
    ("jobs/0", "", JOB),
    ("stages", "0", STAGE),
    ("stages/0", "0", STAGE),
    ("stages/0", "0", "tasks executorSummary"),
    ("stages/0/0", "", STAGE),
    ("stages/0/0", "tasks/0", TASK),
    (
        "stages/0/0",
        "executorSummary/worker_0001",
        "taskTime failedTasks succeededTasks killedTasks inputBytes inputRecords outputBytes outputRecords \
         shuffleRead shuffleReadRecords shuffleWrite shuffleWriteRecords memoryBytesSpilled diskBytesSpilled \
         isBlacklistedForStage isExcludedForStage",
    ),
    ("stages/0/0/taskList", "0", TASK),
    (
        "stages/0/0/taskList",
        "0/taskMetrics",
        "executorDeserializeTime executorDeserializeCpuTime executorRunTime executorCpuTime resultSize jvmGcTime \
         resultSerializationTime memoryBytesSpilled diskBytesSpilled peakExecutionMemory inputMetrics outputMetrics \
         shuffleReadMetrics shuffleWriteMetrics",
    ),
    ("stages/0/0/taskList", "0/taskMetrics/inputMetrics", "bytesRead recordsRead"),
    ("stages/0/0/taskList", "0/taskMetrics/outputMetrics", "bytesWritten recordsWritten"),
    (
        "stages/0/0/taskList",
        "0/taskMetrics/shuffleReadMetrics",
        "remoteBlocksFetched localBlocksFetched fetchWaitTime remoteBytesRead remoteBytesReadToDisk localBytesRead \
         recordsRead remoteReqsDuration shufflePushReadMetrics",
    ),
    ("stages/0/0/taskList", "0/taskMetrics/shuffleReadMetrics/shufflePushReadMetrics", PUSHED),
    ("stages/0/0/taskList", "0/taskMetrics/shuffleWriteMetrics", "bytesWritten writeTime recordsWritten"),
    (
        "stages/0/0/taskSummary",
        "",
        "quantiles duration executorDeserializeTime executorDeserializeCpuTime executorRunTime executorCpuTime \
         resultSize jvmGcTime resultSerializationTime gettingResultTime schedulerDelay peakExecutionMemory \
         memoryBytesSpilled diskBytesSpilled inputMetrics outputMetrics shuffleReadMetrics shuffleWriteMetrics",
    ),
    ("stages/0/0/taskSummary", "inputMetrics", "bytesRead recordsRead"),
    ("stages/0/0/taskSummary", "outputMetrics", "bytesWritten recordsWritten"),
    (
        "stages/0/0/taskSummary",
        "shuffleReadMetrics",
        "readBytes readRecords remoteBlocksFetched localBlocksFetched fetchWaitTime remoteBytesRead \
         remoteBytesReadToDisk totalBlocksFetched remoteReqsDuration shufflePushReadMetricsDist",
    ),
    ("stages/0/0/taskSummary", "shuffleReadMetrics/shufflePushReadMetricsDist", PUSHED),
    ("stages/0/0/taskSummary", "shuffleWriteMetrics", "writeBytes writeRecords writeTime"),
    ("executors", "0", EXECUTOR),
    ("allexecutors", "0", EXECUTOR),
    (
        "allexecutors",
        "0/memoryMetrics",
        "usedOnHeapStorageMemory usedOffHeapStorageMemory totalOnHeapStorageMemory totalOffHeapStorageMemory",
    ),
];
const JOB: &str = "jobId name submissionTime completionTime stageIds jobTags status numTasks numActiveTasks \
    numCompletedTasks numSkippedTasks numFailedTasks numKilledTasks numCompletedIndices numActiveStages \
    numCompletedStages numSkippedStages numFailedStages killedTasksSummary";
const STAGE: &str = "status stageId attemptId numTasks numActiveTasks numCompleteTasks numFailedTasks numKilledTasks \
    numCompletedIndices submissionTime firstTaskLaunchedTime completionTime executorDeserializeTime \
    executorDeserializeCpuTime executorRunTime executorCpuTime resultSize jvmGcTime resultSerializationTime \
    memoryBytesSpilled diskBytesSpilled peakExecutionMemory inputBytes inputRecords outputBytes outputRecords \
    shuffleRemoteBlocksFetched shuffleLocalBlocksFetched shuffleFetchWaitTime shuffleRemoteBytesRead \
    shuffleRemoteBytesReadToDisk shuffleLocalBytesRead shuffleReadBytes shuffleReadRecords \
    shuffleCorruptMergedBlockChunks shuffleMergedFetchFallbackCount shuffleMergedRemoteBlocksFetched \
    shuffleMergedLocalBlocksFetched shuffleMergedRemoteChunksFetched shuffleMergedLocalChunksFetched \
    shuffleMergedRemoteBytesRead shuffleMergedLocalBytesRead shuffleRemoteReqsDuration \
    shuffleMergedRemoteReqsDuration shuffleWriteBytes shuffleWriteTime shuffleWriteRecords name details \
    schedulingPool rddIds accumulatorUpdates killedTasksSummary resourceProfileId isShufflePushEnabled \
    shuffleMergersCount";
const TASK: &str = "taskId index attempt partitionId launchTime duration executorId host status taskLocality \
    speculative accumulatorUpdates taskMetrics executorLogs schedulerDelay gettingResultTime";
const PUSHED: &str = "corruptMergedBlockChunks mergedFetchFallbackCount remoteMergedBlocksFetched \
    localMergedBlocksFetched remoteMergedChunksFetched localMergedChunksFetched remoteMergedBytesRead \
    localMergedBytesRead remoteMergedReqsDuration";
const EXECUTOR: &str = "id hostPort isActive rddBlocks memoryUsed diskUsed totalCores maxTasks activeTasks failedTasks \
    completedTasks totalTasks totalDuration totalGCTime totalInputBytes totalShuffleRead totalShuffleWrite \
    isBlacklisted maxMemory addTime executorLogs memoryMetrics blacklistedInStages attributes resources \
    resourceProfileId isExcluded excludedInStages";

#[test]
fn every_field_of_sparks_is_there() {
    let sample = Sample::start();
    for (path, inside, fields) in FIELDS {
        let path = match *path {
            "version" | "applications" => format!("/api/v1/{path}"),
            "" => FIRST.to_owned(),
            path => format!("{FIRST}/{path}"),
        };
        // The newest comes first, and is the one that runs.
        let path = if path == APPLICATIONS { format!("{path}?status=completed") } else { path };
        let answer = sample.get(&path).json();
        let pointer = if inside.is_empty() { String::new() } else { format!("/{inside}") };
        let object = answer.pointer(&pointer).unwrap_or_else(|| panic!("{path}: no {inside}: {answer}"));
        for field in fields.split_whitespace() {
            assert!(object.get(field).is_some(), "{path}: no {field} in {object}");
        }
    }
}

#[test]
fn queries_choose_as_sparks_do() {
    let sample = Sample::start();
    let chosen = |query: &str| -> Vec<String> {
        let answer = sample.get(&format!("{APPLICATIONS}?{query}")).json();
        let items = answer.as_array().expect("a list").iter();
        items.map(|one| one["id"].as_str().expect("an ID").to_owned()).collect()
    };
    let (both, ended, running) = (
        vec!["application_0_0002".to_owned(), "application_0_0001".to_owned()],
        vec!["application_0_0001".to_owned()],
        vec!["application_0_0002".to_owned()],
    );
    for (query, expected) in [
        ("", &both),
        ("status=running", &running),
        ("status=COMPLETED", &ended),
        ("status=running&status=completed", &both),
        ("limit=1", &running),
        ("limit=0", &vec![]),
        ("limit=18446744073709551615", &both),
        ("minDate=2026-09-21", &both),
        ("minDate=2026-09-22", &vec![]),
        ("minDate=2026-09-21T14:13:20.000GMT&maxDate=2026-09-21T14:13:20.000GMT", &both),
        ("maxDate=2026-09-21T14:13:19.999GMT", &vec![]),
        ("minEndDate=2026-09-21T14:13:22.001GMT", &running),
        ("maxEndDate=2026-09-21T14:13:22.000GMT&status=completed", &ended),
        ("maxEndDate=2026-09-21T14:13:21.999GMT&status=completed", &vec![]),
        ("maxEndDate=2001-01-01", &vec![]),
        ("maxEndDate=2999-01-01", &both),
        // What means nothing here is no reason to break a script.
        ("speed=1", &both),
    ] {
        assert_eq!(&chosen(query), expected, "{query}");
    }
    for (path, expected) in [
        (format!("{FIRST}/jobs?status=succeeded"), 1),
        (format!("{FIRST}/jobs?status=running,failed"), 0),
        (format!("{SECOND}/jobs?status=running"), 1),
        (format!("{FIRST}/stages?status=complete"), 1),
        (format!("{FIRST}/stages?status=active"), 0),
        (format!("{SECOND}/stages?status=ACTIVE"), 1),
        (format!("{FIRST}/stages/0/0/taskList?status=success&sortBy=-runtime"), 1),
        (format!("{FIRST}/stages/0/0/taskList?status=killed"), 0),
        (format!("{FIRST}/stages/0/0/taskList?length=0"), 0),
        (format!("{FIRST}/stages/0/0/taskList?offset=1"), 0),
        (
            format!(
                "{FIRST}/stages/0/0/taskList?offset=18446744073709551615&length=18446744073709551615&sortBy=RUNTIME"
            ),
            0,
        ),
    ] {
        assert_eq!(sample.get(&path).json().as_array().map(Vec::len), Some(expected), "{path}");
    }
    let stage = |path: &str| sample.get(&format!("{FIRST}/{path}")).json();
    assert!(stage("stages?details=true")[0]["tasks"]["0"].is_object());
    assert!(stage("stages/0/0?details=false").get("tasks").is_none());
    let usual = stage("stages/0/0/taskSummary?quantiles=0.1,1");
    assert_eq!((&usual["quantiles"], &usual["duration"]), (&json!([0.1, 1.0]), &json!([1_800.0, 1_800.0])));
}

#[test]
fn identifiers_are_taken_in_both_forms() {
    let sample = Sample::start();
    for id in ["job_0001", "application_0_0001", "application_1790000000000_0001"] {
        let answer = sample.get(&format!("{APPLICATIONS}/{id}")).json();
        assert_eq!(answer["id"], "application_0_0001", "{id}");
    }
    let task = &sample.get(&format!("{FIRST}/stages/0/0/taskList")).json()[0];
    let log = task["executorLogs"]["stderr"].as_str().expect("a path");
    assert_eq!(log, "/api/nap/v1/attempts/job_0001_m_0000.1/log/stderr");
    assert_eq!(sample.get(log).status, 200);
}

#[test]
fn a_suspended_task_runs_and_says_for_how_long_it_naps() {
    let task =
        |sample: &Sample, path: &str| sample.get(&format!("{path}/stages/0/0/taskList")).json()[0].clone();
    let runs = task(&Sample::start(), SECOND);
    let told = |task: &Value| (task["status"].clone(), task["naptime"].clone());
    assert_eq!(told(&runs), (json!("RUNNING"), json!(0)));
    let napped = task(&Sample::preempted(), FIRST);
    let naptime = napped["naptime"].as_u64().expect("a number");
    assert!(naptime > 0 && napped["duration"] == 1_800, "{napped}");
    assert_eq!(napped["taskMetrics"]["executorRunTime"], 1_800 - naptime, "{napped}");
}

#[test]
fn refusals_are_a_line_of_text() {
    let sample = Sample::start();
    for (path, status, line) in [
        ("/application_0_0009", 404, "there is no job_0009"),
        ("/9", 404, "\"9\" is no job"),
        ("/local-1795747412784/stages", 404, "\"local-1795747412784\" is no job"),
        ("/job_0001/jobs/1", 404, "there is no such job of an application; each has one, ask for 0"),
        ("/job_0001/jobs/x", 404, "there is no such job"),
        ("/job_0001/stages/1", 404, "there is no such stage of job_0001; ask for 0 (map)"),
        ("/job_0001/stages/-1", 404, "there is no such stage"),
        ("/job_0001/stages/99999999999999999999", 404, "there is no such stage"),
        ("/job_0001/stages/0/1", 404, "there is no such attempt at the stage"),
        ("/job_0001/stages/0/x/taskList", 404, "there is no such attempt at the stage"),
        ("/job_0002/stages/0/0/taskSummary", 404, "no map of job_0002 is done yet; see its taskList"),
        ("/job_0001/stages/0/0/taskSummary?quantiles=", 400, "quantiles: \"\" is no number from 0 to 1"),
        ("/job_0001/stages/0/0/taskSummary?quantiles=0.5,NaN", 400, "quantiles: \"NaN\""),
        ("/job_0001/stages/0/0/taskSummary?quantiles=-0.5", 400, "quantiles: \"-0.5\""),
        ("/job_0001/stages/0/0/taskList?offset=-1", 400, "offset=-1"),
        ("/job_0001/stages/0/0/taskList?length=x", 400, "length=x"),
        ("/job_0001/stages/0/0/taskList?length=99999999999999999999", 400, "length=9"),
        ("/job_0001/stages/0/0/taskList?sortBy=speed", 400, "tasks are not sorted by \"speed\""),
        (
            "/job_0001/stages/0/0/taskList?status=odd",
            400,
            "\"odd\" is no status of a task; there are running",
        ),
        ("/job_0001/stages?status=odd", 400, "\"odd\" is no status of a stage"),
        ("/job_0001/stages?details=perhaps", 400, "details=perhaps"),
        ("/job_0001/jobs?status=odd", 400, "\"odd\" is no status of a job"),
        ("?status=odd", 400, "\"odd\" is no status of an application"),
        ("?minDate=yesterday", 400, "minDate=yesterday: write it as 2026-11-22 or"),
        ("?limit=-1", 400, "limit=-1"),
        ("?limit=1&limit=2", 400, "limit is said twice"),
    ] {
        let answer = sample.get(&format!("{APPLICATIONS}{path}"));
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        assert!(answer.body.starts_with(line) && !answer.body.contains('\n'), "{path}: {}", answer.body);
    }
    let stranger = sample.ask(&format!("GET {APPLICATIONS}"), &[], "");
    assert_eq!(stranger.status, 401, "{}", stranger.body);
    assert!(stranger.body.starts_with("nobody is signed in; open the link"), "{}", stranger.body);
    assert_eq!(sample.get("/api/v1/nothing").status, 404);
    assert_eq!(sample.ask(&format!("POST {APPLICATIONS}"), &[], "").status, 405);
    assert_eq!(
        sample.ask(&format!("GET {APPLICATIONS}"), &[("Origin", "http://evil.example")], "").status,
        403
    );
}
