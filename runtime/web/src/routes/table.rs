//! The table of routes.

use napreduce_answers::{
    COLUMNS_KIND, ComparisonAnswer, CountersAnswer, ENDS, FailureAnswer, FlowAnswer, GroupAnswer,
    HistoryAnswer, JobComparison, JobExplanation, JobStatusAnswer, PerformanceAnswer,
    PreemptionAnswer, PreemptionTotals, QuantilesAnswer, QueueStatusAnswer, QueuesAnswer,
    SearchAnswer, SharesAnswer, StatusAnswer, SubmittedPage, TaskExplanation, TaskRow,
    TaskStatusAnswer, TimelineAnswer, WorkerAnswer,
};
use napreduce_engine::Primitive;
use napreduce_protocol::{
    AttemptSummary, HistoryLine, JobPhase, JobSummary, TaskPhase, WorkerSample, WorkerSummary,
};

use super::links::{LinkBody, LinksAnswer, NewLinkAnswer};
use super::list::{
    AttemptPage, EventPage, FORMAT, FailurePage, FlowPage, GroupPage, JobPage, PerformancePage,
    PreemptionPage, TaskPage, WorkerChangePage, WorkerPage, page_fields,
};
use super::orders::{Change, Drain, Ordered, Reason, Rerun};
use super::preemptions::FLOW_ENDS;
use super::recordings::RecordingsAnswer;
use super::route::{
    Answer, CSV, QueryField, Route, field, get, get_as, json, number, one_of, order, post, some_of,
    takes,
};
use super::session::{SessionAnswer, SignInAnswer, SignInBody};
use super::what_if::{WhatIfBody, WhatIfsAnswer};
use super::{
    jobs, links, orders, preemptions, recordings, search, session, shares, stream, what_if, whole,
    workers,
};
use crate::what_if::WhatIf;

const WINDOW_FROM: QueryField = moment(
    "from",
    "begin of the window in milliseconds since 1970; default: ten minutes ago",
);
const WINDOW_UNTIL: QueryField = moment(
    "until",
    "end of the window in milliseconds since 1970; default: now",
);
const COLUMNS: QueryField = number(
    "columns",
    "merge neighbouring stints that are narrower than the window divided by this number, if the answer would be \
     larger than 4 MiB, about 150,000 stints; default: 1000, fewer if there are many slots",
    1,
    10_000,
);
const LEDGER_FROM: QueryField = moment(
    "from",
    "requested at or after this time, in milliseconds since 1970; default: an hour ago",
);
const LEDGER_UNTIL: QueryField = moment(
    "until",
    "requested before this time, in milliseconds since 1970; default: now",
);
const BY: QueryField = field(
    "by",
    "requested by this one: the name of a scheduler, operator or engine",
);
const PRIMITIVE: QueryField = some_of(
    "primitive",
    "only these primitives, separated by commas",
    &Primitive::WORDS,
);
const END: QueryField = some_of("end", "only these outcomes, separated by commas", &ENDS);
const QUEUE: QueryField = field("queue", "the victim or the beneficiary is in this queue");
const GROUP: QueryField = field("group", "only the entries of this group, in order of time");

const YES_OR_NO: &[&str] = &["true", "false"];

/// A time in milliseconds; the maximum still fits in microseconds.
const fn moment(name: &'static str, about: &'static str) -> QueryField {
    number(name, about, 0, u64::MAX / 1_000)
}

const fn bytes(name: &'static str, about: &'static str) -> QueryField {
    number(name, about, 0, u64::MAX)
}

/// All routes except those of the page itself.
pub fn all_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter()
}

static ROUTES: &[Route] = &[
    get_as("text/plain", "/healthz", "Health of the web server", whole::health).for_anybody().at_once(),
    get_as("application/json", "/api/openapi.json", "This description", whole::description).for_anybody(),
    get_as("application/openmetrics-text", "/metrics", "Metrics for Prometheus", whole::metrics),
    post(
        "/api/nap/v1/sign-in",
        "Sign in with the code of a link",
        takes::<SignInBody>(),
        json::<SignInAnswer>(),
        session::sign_in,
    )
    .for_anybody(),
    post(
        "/api/nap/v1/sign-out",
        "Sign out: delete the cookie of the browser",
        None,
        Answer::Other("text/plain"),
        session::sign_out,
    )
    .for_anybody(),
    get::<SessionAnswer>(
        "/api/nap/v1/session",
        "Current session and features of the server",
        session::session,
    ),
    get::<LinksAnswer>("/api/nap/v1/links", "Shared links that are valid", links::list).for_operators(),
    post(
        "/api/nap/v1/links",
        "Share a link to view the page; it may be used repeatedly until it ends or is revoked",
        takes::<LinkBody>(),
        json::<NewLinkAnswer>(),
        links::share,
    ),
    post(
        "/api/nap/v1/links/{link}/revoke",
        "Revoke a shared link and the sessions that it opened",
        None,
        json::<Ordered>(),
        links::revoke,
    ),
    get::<RecordingsAnswer>(
        "/api/nap/v1/recordings",
        "Histories shown side by side, with a summary of each",
        recordings::list,
    )
    .or_as(CSV)
    .asking(&[FORMAT]),
    get::<ComparisonAnswer>(
        "/api/nap/v1/compare",
        "Comparison of the same jobs in two recordings",
        recordings::compare,
    )
    .asking(&[
        field("left", "name of a recording; default: the one shown first"),
        field("right", "name of a recording; default: the one shown first"),
    ]),
    get::<WhatIfsAnswer>(
        "/api/nap/v1/what-if",
        "Simulations of the history under other schedulers",
        what_if::list,
    ),
    get::<WhatIf>(
        "/api/nap/v1/what-if/{what_if}",
        "Status, fidelity and results of a simulation",
        what_if::one,
    ),
    post(
        "/api/nap/v1/what-if",
        "Simulate the jobs of a window under other schedulers",
        takes::<WhatIfBody>(),
        json::<WhatIf>(),
        what_if::ask,
    ),
    post(
        "/api/nap/v1/what-if/{what_if}/remove",
        "Remove a simulation and its results; a running one is stopped",
        None,
        json::<Ordered>(),
        what_if::remove,
    ),
    get::<SearchAnswer>(
        "/api/nap/v1/search",
        "Jobs, tasks, workers, users and queues whose ID or name contains a text, the best match first; of several \
         recordings all are searched",
        search::search,
    )
    .asking(&[
        field(
            "text",
            "part of an ID or a name, ignoring case; for tasks such as m_2077, job_0007_m_2077.1 or wordcount m_2077",
        ),
        number("limit", "number of items, 1 to 100; default: 10", 1, 100),
    ]),
    get::<StatusAnswer>("/api/nap/v1/cluster", "Overview of the cluster", whole::cluster),
    get_as("text/event-stream", "/api/nap/v1/stream", "Changes as server-sent events", stream::stream)
        .asking(&[
            field(
                "topics",
                "cluster, jobs, job:job_0007, preemptions, shares, workers, separated by commas; default: \
                   cluster,jobs,workers",
            ),
            field("after", "resume after the event with this ID, for clients that cannot send Last-Event-ID"),
        ]),
    get::<TimelineAnswer>("/api/nap/v1/timeline", "Slot occupancy in a window", whole::timeline)
        .or_as(COLUMNS_KIND)
        .asking(&[field("worker", "only this worker"), WINDOW_FROM, WINDOW_UNTIL, COLUMNS]),
    get::<PreemptionPage>(
        "/api/nap/v1/preemptions",
        "Preemptions of all jobs in a window, newest first",
        preemptions::list,
    )
    .listing(
        page_fields::<PreemptionAnswer>(),
        &[LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE, GROUP],
    ),
    get::<GroupPage>(
        "/api/nap/v1/preemptions/groups",
        "Preemptions in a window, grouped by time, jobs, primitive and reason, newest first",
        preemptions::groups,
    )
    .listing(page_fields::<GroupAnswer>(), &[LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE]),
    get::<PreemptionTotals>(
        "/api/nap/v1/preemptions/totals",
        "Totals of the preemptions in a window: count, latency, work saved and lost",
        preemptions::totals,
    )
    .asking(&[LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE]),
    get::<FlowPage>(
        "/api/nap/v1/preemptions/flows",
        "Slots that moved between queues or jobs in a window, by primitive",
        preemptions::flows,
    )
    .listing(
        page_fields::<FlowAnswer>(),
        &[one_of("by", "unit of the sums; default: queue", FLOW_ENDS), LEDGER_FROM, LEDGER_UNTIL, QUEUE],
    ),
    get::<WorkerPage>("/api/nap/v1/workers", "Workers", workers::list)
        .listing(page_fields::<WorkerSummary>(), &[]),
    get::<WorkerAnswer>("/api/nap/v1/workers/{worker}", "One worker", workers::one),
    get::<WorkerChangePage>(
        "/api/nap/v1/workers/changes",
        "State changes of workers in a window, newest first",
        workers::changes,
    )
    .listing(
        page_fields::<WorkerSample>(),
        &[
            field("worker", "only this worker"),
            moment("from", "begin of the window in milliseconds since 1970; default: a day ago"),
            moment("until", "end of the window in milliseconds since 1970; default: now"),
        ],
    ),
    get::<PerformancePage>(
        "/api/nap/v1/workers/performance",
        "Failures and relative speed of each worker in a window",
        workers::performance,
    )
    .listing(
        page_fields::<PerformanceAnswer>(),
        &[
            moment("from", "begin of the window in milliseconds since 1970; default: an hour ago"),
            moment("until", "end of the window in milliseconds since 1970; default: now"),
        ],
    ),
    get::<FailurePage>(
        "/api/nap/v1/workers/failures",
        "Attempts that failed in a window, newest first",
        workers::failures,
    )
    .listing(
        page_fields::<FailureAnswer>(),
        &[
            field("worker", "only on this worker"),
            moment("from", "begin of the window in milliseconds since 1970; default: a day ago"),
            moment("until", "end of the window in milliseconds since 1970; default: now"),
        ],
    ),
    get::<QueuesAnswer>(
        "/api/nap/v1/queues",
        "Queues of the scheduler, with their use and demand",
        whole::queues,
    )
    .or_as(CSV)
    .asking(&[FORMAT]),
    get::<QueueStatusAnswer>(
        "/api/nap/v1/queues/{queue}",
        "One queue, and the users of its jobs",
        whole::queue,
    ),
    get::<SharesAnswer>(
        "/api/nap/v1/shares",
        "Slots of each queue over time, averaged per step",
        shares::shares,
    )
    .asking(&[
        moment(
            "from",
            "begin of the window in milliseconds since 1970; default: ten minutes ago, or all of a history",
        ),
        moment("until", "end of the window in milliseconds since 1970; default: now"),
        number(
            "step",
            "length of a step in milliseconds, at most 1000 steps; default: a 120th of the window",
            1,
            u64::MAX / 1_000,
        ),
    ]),
    get::<JobPage>(
        "/api/nap/v1/jobs",
        "Jobs: those that have not ended, then the ended ones, newest first",
        jobs::list,
    )
    .listing(
        page_fields::<JobSummary>(),
        &[
            some_of("state", "only jobs in these states, separated by commas", &JobPhase::WORDS),
            field("queue", "only jobs in this queue"),
            field("user", "only jobs of this user"),
            field("name", "only jobs with this name"),
            field("text", "only jobs whose ID, name, user or queue contains this text"),
            moment("from", "submitted at or after this time, in milliseconds since 1970"),
            moment("until", "submitted before this time, in milliseconds since 1970"),
            field(
                "before",
                "only jobs submitted before this one: with sort=-job, the last job of a page continues after it, whatever \
                 is submitted meanwhile",
            ),
        ],
    ),
    get::<JobStatusAnswer>("/api/nap/v1/jobs/{job}", "One job", jobs::status),
    get::<SubmittedPage>(
        "/api/nap/v1/jobs/{job}/submitted",
        "How a job was submitted, and the earlier jobs of its name",
        jobs::submitted,
    ),
    get::<JobComparison>(
        "/api/nap/v1/jobs/{job}/compare",
        "Comparison of a job with another one: figures, what was submitted differently, counters that differ",
        jobs::compare,
    )
    .asking(&[field(
        "with",
        "the other job; default: the one submitted before it under the same name, or the job itself",
    )]),
    get::<CountersAnswer>("/api/nap/v1/jobs/{job}/counters", "Counters of a job", jobs::counters)
        .or_as(CSV)
        .asking(&[FORMAT]),
    get::<jobs::LastLineAnswer>(
        "/api/nap/v1/jobs/{job}/last-stderr",
        "Last line that the newest failed attempt of a job printed to standard error",
        jobs::last_stderr,
    ),
    get::<HistoryAnswer>("/api/nap/v1/jobs/{job}/history", "Complete history of a job", jobs::history),
    get::<EventPage>("/api/nap/v1/jobs/{job}/events", "Events of a job", jobs::events)
        .listing(page_fields::<HistoryLine>(), &[]),
    get::<TaskPage>(
        "/api/nap/v1/jobs/{job}/tasks",
        "Tasks of a job with their attempts: running ones, those with failures, then the others, longest first",
        jobs::tasks,
    )
    .listing(
        page_fields::<TaskRow>(),
        &[
            field(
                "text",
                "only tasks whose ID, state or reason, or an attempt's ID, worker or end, contains this text",
            ),
            some_of("state", "only tasks in these states, separated by commas", &TaskPhase::WORDS),
            one_of("failed", "true: only tasks with a failed attempt; false: only others", YES_OR_NO),
            one_of(
                "slow",
                "true: only tasks that took more than three times the median of their kind; false: only others",
                YES_OR_NO,
            ),
        ],
    ),
    get::<AttemptPage>("/api/nap/v1/jobs/{job}/attempts", "Attempts of a job", jobs::attempts).listing(
        page_fields::<AttemptSummary>(),
        &[field(
            "text",
            "only attempts whose ID, worker or end contains this text; the end of a running one is: running",
        )],
    ),
    get::<QuantilesAnswer>(
        "/api/nap/v1/jobs/{job}/quantiles",
        "Quantiles over the successful attempts of a job: time, bytes, records",
        jobs::quantiles,
    ),
    get::<PreemptionPage>(
        "/api/nap/v1/jobs/{job}/preemptions",
        "Preemptions of a job, with the work saved and lost",
        jobs::preemptions,
    )
    .listing(page_fields::<PreemptionAnswer>(), &[GROUP]),
    get::<GroupPage>(
        "/api/nap/v1/jobs/{job}/preemptions/groups",
        "Preemptions of a job, grouped by time, beneficiary, primitive and reason, newest first",
        jobs::preemption_groups,
    )
    .listing(page_fields::<GroupAnswer>(), &[]),
    get::<PreemptionTotals>(
        "/api/nap/v1/jobs/{job}/preemptions/totals",
        "Totals of the preemptions of a job",
        jobs::preemption_totals,
    ),
    get::<TimelineAnswer>("/api/nap/v1/jobs/{job}/timeline", "Timeline of a job's attempts", jobs::timeline)
        .or_as(COLUMNS_KIND)
        .asking(&[
            field(
                "neighbours",
                "true: include the attempts of other jobs at that time, as far as there is room",
            ),
            moment("from", "begin of the window in milliseconds since 1970; default: the submission"),
            moment("until", "end of the window in milliseconds since 1970; default: the end of the job"),
            COLUMNS,
        ]),
    get_as(
        "application/json",
        "/api/nap/v1/jobs/{job}/trace.json",
        "Trace of a job for Perfetto",
        jobs::trace,
    ),
    get_as(
        "text/html",
        "/api/nap/v1/jobs/{job}/report.html",
        "Report of a job as one self-contained file",
        jobs::report,
    ),
    get::<JobExplanation>(
        "/api/nap/v1/jobs/{job}/explain",
        "Why a job makes no progress, and what makes or made it slow",
        jobs::explain,
    ),
    get::<TaskStatusAnswer>("/api/nap/v1/tasks/{task}", "One task and its attempts", jobs::task),
    get::<TimelineAnswer>(
        "/api/nap/v1/tasks/{task}/timeline",
        "Timeline of a task's attempts",
        jobs::task_timeline,
    )
    .or_as(COLUMNS_KIND),
    get::<TaskExplanation>(
        "/api/nap/v1/tasks/{task}/explain",
        "Why a task makes no progress",
        jobs::explain_task,
    ),
    get_as(
        "text/plain",
        "/api/nap/v1/attempts/{attempt}/log/{stream}",
        "Log of an attempt: stdout or stderr",
        jobs::log,
    )
    .asking(&[
        bytes("offset", "offset of the first byte; default: 0"),
        bytes("limit", "number of bytes, at most 1 MiB; default: 1 MiB"),
    ]),
    order::<Reason>("/api/nap/v1/jobs/{job}/kill", "Kill a job", orders::kill_job),
    order::<Reason>("/api/nap/v1/jobs/{job}/suspend", "Suspend all tasks of a job", orders::suspend_job),
    order::<Reason>("/api/nap/v1/jobs/{job}/resume", "Resume a suspended job", orders::resume_job),
    order::<Reason>(
        "/api/nap/v1/jobs/{job}/hold",
        "Hold a job: launch no further tasks; running ones finish",
        orders::hold_job,
    ),
    order::<Reason>("/api/nap/v1/jobs/{job}/release", "Release a held job", orders::release_job),
    order::<Change>("/api/nap/v1/jobs/{job}/set", "Change the priority or queue of a job", orders::set_job),
    order::<Rerun>(
        "/api/nap/v1/jobs/{job}/rerun",
        "Submit a job again: same program and input; the answer names the new job",
        orders::rerun_job,
    ),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/suspend",
        "Suspend the running attempts of a task",
        orders::suspend_task,
    ),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/resume",
        "Resume the suspended attempts of a task",
        orders::resume_task,
    ),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/checkpoint",
        "Checkpoint a task and release its slot",
        orders::checkpoint_task,
    ),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/kill",
        "Kill the running attempts of a task; the task is retried",
        orders::kill_task,
    ),
    order::<Drain>(
        "/api/nap/v1/workers/{worker}/drain",
        "Drain a worker: it finishes or hands back its attempts, then leaves",
        orders::drain,
    ),
    order::<Reason>(
        "/api/nap/v1/workers/{worker}/undrain",
        "Cancel the draining of a worker",
        orders::undrain,
    ),
];
