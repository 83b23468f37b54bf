//! The table of routes.
//!
//! Owns which routes there are, their roles, and what stands in their description. Does not own what they do.

use napreduce_engine::Primitive;
use napreduce_protocol::{
    AttemptSummary, HistoryLine, JobPhase, JobSummary, TaskSummary, WorkerSample, WorkerSummary,
};

use super::list::{
    AttemptPage, EventPage, FlowPage, JobPage, PreemptionPage, TaskPage, WorkerChangePage, WorkerPage,
    fields_field, sort_field,
};
use super::orders::{Drain, Ordered, Reason};
use super::preemptions::{ENDS, FLOW_ENDS};
use super::recordings::RecordingsAnswer;
use super::route::{
    Answer, QueryField, Route, field, get, get_as, json, number, one_of, order, post, some_of, takes,
};
use super::session::{SessionAnswer, SignInAnswer, SignInBody};
use super::what_if::{WhatIfBody, WhatIfsAnswer};
use super::{jobs, orders, preemptions, recordings, session, shares, stream, what_if, whole};
use crate::answers::{
    COLUMNS_KIND, ComparisonAnswer, CountersAnswer, FlowAnswer, HistoryAnswer, JobExplanation,
    JobStatusAnswer, PreemptionAnswer, PreemptionTotals, QuantilesAnswer, QueuesAnswer, SharesAnswer,
    StatusAnswer, TaskExplanation, TaskStatusAnswer, TimelineAnswer, WorkerAnswer,
};
use crate::what_if::WhatIf;

const LIMIT: QueryField = number("limit", "how many, 100 unless said, at most 10000", 1, 10_000);
const AFTER: QueryField = number("after", "the `next` of the page before", 0, u64::MAX);

/// What every list may be asked.
macro_rules! list_of {
    ($of:ty $(, $field:expr)*) => {
        &[$($field,)* sort_field::<$of>(), fields_field::<$of>(), LIMIT, AFTER]
    };
}
const WINDOW_FROM: QueryField = moment("from", "in milliseconds since 1970; ten minutes ago unless said");
const WINDOW_UNTIL: QueryField = moment("until", "likewise; now unless said");
const COLUMNS: QueryField = number(
    "columns",
    "where there is more than 4 MiB can say, some 150,000 stints, what is narrower than such a share of the window is \
     drawn with its neighbours; 1,000 unless said, fewer if there are many slots",
    1,
    10_000,
);
const LEDGER_FROM: QueryField =
    moment("from", "only those asked for then or later, in milliseconds since 1970; an hour ago unless said");
const LEDGER_UNTIL: QueryField = moment("until", "only those asked for before that; now unless said");
const BY: QueryField = field("by", "only of this requester: a scheduler's name, operator or engine");
const PRIMITIVE: QueryField = some_of("primitive", "only these, separated by commas", &Primitive::WORDS);
const END: QueryField = some_of("end", "only these, separated by commas", ENDS);
const QUEUE: QueryField = field("queue", "only where the victim or the beneficiary is of this queue");

/// A moment, as far as microseconds can say it.
const fn moment(name: &'static str, about: &'static str) -> QueryField {
    number(name, about, 0, u64::MAX / 1_000)
}

const fn bytes(name: &'static str, about: &'static str) -> QueryField {
    number(name, about, 0, u64::MAX)
}

/// All routes but those of the page itself.
pub fn all_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter()
}

static ROUTES: &[Route] = &[
    get_as("text/plain", "/healthz", "Whether the server runs", whole::health).for_anybody().at_once(),
    get_as("application/json", "/api/openapi.json", "This description", whole::description).for_anybody(),
    get_as("application/openmetrics-text", "/metrics", "Metrics for Prometheus", whole::metrics),
    post(
        "/api/nap/v1/sign-in",
        "Signs in by the code of a link",
        takes::<SignInBody>(),
        json::<SignInAnswer>(),
        session::sign_in,
    )
    .for_anybody(),
    post(
        "/api/nap/v1/sign-out",
        "Has the browser forget its cookie",
        None,
        Answer::Other("text/plain"),
        session::sign_out,
    )
    .for_anybody(),
    get::<SessionAnswer>("/api/nap/v1/session", "Who asks, and what there is here", session::session),
    get::<RecordingsAnswer>(
        "/api/nap/v1/recordings",
        "The histories that are shown side by side, and what each comes to",
        recordings::list,
    ),
    get::<ComparisonAnswer>("/api/nap/v1/compare", "The same jobs in two recordings", recordings::compare)
        .asking(&[
            field("left", "a recording; what is shown first unless said"),
            field("right", "another one; likewise"),
        ]),
    get::<WhatIfsAnswer>(
        "/api/nap/v1/what-if",
        "Simulations of the history under other policies, and which there are",
        what_if::list,
    ),
    get::<WhatIf>(
        "/api/nap/v1/what-if/{what_if}",
        "How far one is, how far it can be trusted, and what it made",
        what_if::one,
    ),
    post(
        "/api/nap/v1/what-if",
        "Simulates the jobs of a time as if the cluster had had other policies",
        takes::<WhatIfBody>(),
        json::<WhatIf>(),
        what_if::ask,
    ),
    post(
        "/api/nap/v1/what-if/{what_if}/remove",
        "Removes one and what it made; one that runs is ended",
        None,
        json::<Ordered>(),
        what_if::remove,
    ),
    get::<StatusAnswer>("/api/nap/v1/cluster", "The cluster at a glance", whole::cluster),
    get_as("text/event-stream", "/api/nap/v1/stream", "What changes, as it happens", stream::stream).asking(
        &[
            field(
                "topics",
                "cluster, jobs, job:job_0007, preemptions, shares, workers, separated by commas; the first, \
                   second and last unless said",
            ),
            field("after", "go on after the event with this ID, for who cannot say Last-Event-ID"),
        ],
    ),
    get::<TimelineAnswer>("/api/nap/v1/timeline", "Who held which slot in a window of time", whole::timeline)
        .or_as(COLUMNS_KIND)
        .asking(&[field("worker", "only what was done on this worker"), WINDOW_FROM, WINDOW_UNTIL, COLUMNS]),
    get::<PreemptionPage>(
        "/api/nap/v1/preemptions",
        "Who took which slot from whom, in all jobs of a window of time, newest first",
        preemptions::list,
    )
    .asking(list_of!(PreemptionAnswer, LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE)),
    get::<PreemptionTotals>(
        "/api/nap/v1/preemptions/totals",
        "What these come to: how many, how quick, what was saved and lost",
        preemptions::totals,
    )
    .asking(&[LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE]),
    get::<FlowPage>(
        "/api/nap/v1/preemptions/flows",
        "From whom to whom slots were taken in a window of time, by primitive",
        preemptions::flows,
    )
    .asking(list_of!(
        FlowAnswer,
        one_of("by", "queue unless said", FLOW_ENDS),
        LEDGER_FROM,
        LEDGER_UNTIL
    )),
    get::<WorkerPage>("/api/nap/v1/workers", "The workers", whole::workers).asking(list_of!(WorkerSummary)),
    get::<WorkerAnswer>("/api/nap/v1/workers/{worker}", "A worker", whole::worker),
    get::<WorkerChangePage>(
        "/api/nap/v1/workers/changes",
        "What became of workers in a window of time, newest first",
        whole::worker_changes,
    )
    .asking(list_of!(
        WorkerSample,
        field("worker", "only of this worker"),
        moment("from", "in milliseconds since 1970; a day ago unless said"),
        moment("until", "likewise; now unless said")
    )),
    get::<QueuesAnswer>(
        "/api/nap/v1/queues",
        "The queues of the scheduler, with what is used and wanted in each",
        whole::queues,
    ),
    get::<SharesAnswer>(
        "/api/nap/v1/shares",
        "The slots of each queue in a window of time, in the mean of its steps",
        shares::shares,
    )
    .asking(&[
        moment("from", "in milliseconds since 1970; ten minutes ago unless said, of a history all of it"),
        moment("until", "likewise; now unless said"),
        number(
            "step",
            "in milliseconds; the window in 120 steps unless said, at most 1000",
            1,
            u64::MAX / 1_000,
        ),
    ]),
    get::<JobPage>(
        "/api/nap/v1/jobs",
        "Jobs that have not ended, then those that have, newest first",
        jobs::list,
    )
    .asking(list_of!(
        JobSummary,
        some_of("state", "only these, separated by commas", &JobPhase::WORDS),
        field("queue", "only of this queue"),
        field("user", "only of this user"),
        field("name", "only of this name"),
        field("text", "only those with this in their ID, name, user or queue"),
        moment("from", "only those submitted then or later, in milliseconds since 1970"),
        moment("until", "only those submitted before that")
    )),
    get::<JobStatusAnswer>("/api/nap/v1/jobs/{job}", "A job", jobs::status),
    get::<CountersAnswer>("/api/nap/v1/jobs/{job}/counters", "What it has counted", jobs::counters),
    get::<HistoryAnswer>("/api/nap/v1/jobs/{job}/history", "All that happened to it", jobs::history),
    get::<EventPage>("/api/nap/v1/jobs/{job}/events", "What happened to it as a whole", jobs::events)
        .asking(list_of!(HistoryLine)),
    get::<TaskPage>("/api/nap/v1/jobs/{job}/tasks", "Its tasks", jobs::tasks).asking(list_of!(
        TaskSummary,
        field("text", "only those with this in their ID, state or reason, or in their attempts or workers")
    )),
    get::<AttemptPage>("/api/nap/v1/jobs/{job}/attempts", "Its attempts", jobs::attempts).asking(list_of!(
        AttemptSummary,
        field("text", "only those with this in their ID, worker or end; one that goes on is active")
    )),
    get::<QuantilesAnswer>(
        "/api/nap/v1/jobs/{job}/quantiles",
        "How the attempts compare that did its tasks: time, bytes, records",
        jobs::quantiles,
    ),
    get::<PreemptionPage>(
        "/api/nap/v1/jobs/{job}/preemptions",
        "Who took which slot of it, and what that saved and lost",
        jobs::preemptions,
    )
    .asking(list_of!(PreemptionAnswer)),
    get::<PreemptionTotals>(
        "/api/nap/v1/jobs/{job}/preemptions/totals",
        "What all of these come to",
        jobs::preemption_totals,
    ),
    get::<TimelineAnswer>("/api/nap/v1/jobs/{job}/timeline", "The life of its attempts", jobs::timeline)
        .or_as(COLUMNS_KIND)
        .asking(&[
            field(
                "neighbours",
                "true: with the attempts of other jobs at that time, as far as there is room",
            ),
            moment("from", "only what lies after it, in milliseconds since 1970"),
            moment("until", "only what lies before it"),
            COLUMNS,
        ]),
    get_as("application/json", "/api/nap/v1/jobs/{job}/trace.json", "The same for Perfetto", jobs::trace),
    get_as(
        "text/html",
        "/api/nap/v1/jobs/{job}/report.html",
        "All of it as one file, which needs nothing else",
        jobs::report,
    ),
    get::<JobExplanation>("/api/nap/v1/jobs/{job}/explain", "Why it does not get on", jobs::explain),
    get::<TaskStatusAnswer>("/api/nap/v1/tasks/{task}", "A task, and its attempts", jobs::task),
    get::<TimelineAnswer>(
        "/api/nap/v1/tasks/{task}/timeline",
        "The life of its attempts",
        jobs::task_timeline,
    )
    .or_as(COLUMNS_KIND),
    get::<TaskExplanation>(
        "/api/nap/v1/tasks/{task}/explain",
        "Why a task does not get on",
        jobs::explain_task,
    ),
    get_as(
        "text/plain",
        "/api/nap/v1/attempts/{attempt}/log/{stream}",
        "What an attempt has printed: stdout or stderr",
        jobs::log,
    )
    .asking(&[
        bytes("offset", "from which byte on; 0 unless said"),
        bytes("limit", "how many bytes, at most 1 MiB"),
    ]),
    order::<Reason>("/api/nap/v1/jobs/{job}/kill", "Ends a job", orders::kill_job),
    order::<Reason>("/api/nap/v1/jobs/{job}/suspend", "Suspends a job as a whole", orders::suspend_job),
    order::<Reason>("/api/nap/v1/jobs/{job}/resume", "Lets a suspended job go on", orders::resume_job),
    order::<Reason>(
        "/api/nap/v1/jobs/{job}/hold",
        "Starts nothing of a job; what runs is let finish",
        orders::hold_job,
    ),
    order::<Reason>("/api/nap/v1/jobs/{job}/release", "Lets a held job go on", orders::release_job),
    order::<Reason>("/api/nap/v1/tasks/{task}/suspend", "Suspends what runs of a task", orders::suspend_task),
    order::<Reason>("/api/nap/v1/tasks/{task}/resume", "Lets it go on", orders::resume_task),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/checkpoint",
        "Saves the work of a task, and frees its slot",
        orders::checkpoint_task,
    ),
    order::<Reason>(
        "/api/nap/v1/tasks/{task}/kill",
        "Kills what runs of a task; it is tried again",
        orders::kill_task,
    ),
    order::<Drain>(
        "/api/nap/v1/workers/{worker}/drain",
        "Has a worker finish what it runs, or give it back, and leave",
        orders::drain,
    ),
    order::<Reason>("/api/nap/v1/workers/{worker}/undrain", "Has a worker that drains stay", orders::undrain),
];
