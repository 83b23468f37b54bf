//! The table of routes.
//!
//! Owns which routes there are, their roles, and what stands in their description. Does not own what they do, nor the routes of
//! Hadoop's dialect (`hadoop`).

use axum::http::Method;
use napreduce_core::Primitive;
use napreduce_protocol::{AttemptSummary, HistoryLine, JobPhase, JobSummary, TaskSummary, WorkerSummary};

use super::list::{
    AttemptPage, EventPage, FlowPage, JobPage, PreemptionPage, TaskPage, WorkerPage, fields_field, sort_field,
};
use super::orders::{Drain, Ordered, Reason};
use super::preemptions::{ENDS, FLOW_ENDS};
use super::recordings::RecordingsAnswer;
use super::route::{
    Answer, Body, Dialect, QueryField, Route, field, get, json, number, one_of, order, some_of,
};
use super::session::{SessionAnswer, SignInAnswer, SignInBody};
use super::what_if::{WhatIfBody, WhatIfsAnswer};
use super::{hadoop, jobs, orders, preemptions, recordings, session, stream, what_if, whole};
use crate::answers::{
    ComparisonAnswer, CountersAnswer, FlowAnswer, HistoryAnswer, JobExplanation, JobStatusAnswer,
    PreemptionAnswer, PreemptionTotals, QueuesAnswer, StatusAnswer, TaskExplanation, TimelineAnswer,
};
use crate::guard::WebRole;
use crate::what_if::WhatIf;

const LIMIT: QueryField = number("limit", "how many, 100 unless said, at most 10000", 1, 10_000);
const AFTER: QueryField = number("after", "the `next` of the page before", 0, u64::MAX);

/// What every list may be asked.
macro_rules! list_of {
    ($of:ty $(, $field:expr)*) => {
        &[$($field,)* sort_field::<$of>(), fields_field::<$of>(), LIMIT, AFTER]
    };
}
const WINDOW: &[QueryField] = &[
    moment("from", "in milliseconds since 1970; ten minutes ago unless said"),
    moment("until", "likewise; now unless said"),
];
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

const REASON: Body = |generator| generator.subschema_for::<Reason>();

/// All routes but those of the page itself.
pub fn all_routes() -> impl Iterator<Item = &'static Route> {
    NATIVE.iter().chain(hadoop::ROUTES)
}

static NATIVE: &[Route] = &[
    get(
        "/healthz",
        WebRole::Nobody,
        "Whether the server runs",
        &[],
        Answer::Other("text/plain"),
        whole::health,
    ),
    get(
        "/api/openapi.json",
        WebRole::Nobody,
        "This description",
        &[],
        Answer::Other("application/json"),
        whole::description,
    ),
    get(
        "/metrics",
        WebRole::View,
        "Metrics for Prometheus",
        &[],
        Answer::Other("application/openmetrics-text"),
        whole::metrics,
    ),
    Route {
        method: Method::POST,
        dialect: Dialect::Native,
        path: "/api/nap/v1/sign-in",
        role: WebRole::Nobody,
        about: "Signs in by the code of a link",
        query: &[],
        takes: Some(|generator| generator.subschema_for::<SignInBody>()),
        gives: json::<SignInAnswer>(),
        answer: session::sign_in,
    },
    Route {
        method: Method::POST,
        dialect: Dialect::Native,
        path: "/api/nap/v1/sign-out",
        role: WebRole::Nobody,
        about: "Has the browser forget its cookie",
        query: &[],
        takes: None,
        gives: Answer::Other("text/plain"),
        answer: session::sign_out,
    },
    get(
        "/api/nap/v1/session",
        WebRole::View,
        "Who asks, and what there is here",
        &[],
        json::<SessionAnswer>(),
        session::session,
    ),
    get(
        "/api/nap/v1/recordings",
        WebRole::View,
        "The histories that are shown side by side, and what each comes to",
        &[],
        json::<RecordingsAnswer>(),
        recordings::list,
    ),
    get(
        "/api/nap/v1/compare",
        WebRole::View,
        "The same jobs in two recordings",
        &[
            field("left", "a recording; what is shown first unless said"),
            field("right", "another one; likewise"),
        ],
        json::<ComparisonAnswer>(),
        recordings::compare,
    ),
    get(
        "/api/nap/v1/what-if",
        WebRole::View,
        "Simulations of the history under other policies, and which there are",
        &[],
        json::<WhatIfsAnswer>(),
        what_if::list,
    ),
    get(
        "/api/nap/v1/what-if/{what_if}",
        WebRole::View,
        "How far one is, how far it can be trusted, and what it made",
        &[],
        json::<WhatIf>(),
        what_if::one,
    ),
    Route {
        method: Method::POST,
        dialect: Dialect::Native,
        path: "/api/nap/v1/what-if",
        role: WebRole::Operate,
        about: "Simulates the jobs of a time as if the cluster had had other policies",
        query: &[],
        takes: Some(|generator| generator.subschema_for::<WhatIfBody>()),
        gives: json::<WhatIf>(),
        answer: what_if::ask,
    },
    Route {
        method: Method::POST,
        dialect: Dialect::Native,
        path: "/api/nap/v1/what-if/{what_if}/remove",
        role: WebRole::Operate,
        about: "Removes one and what it made; one that runs is ended",
        query: &[],
        takes: None,
        gives: json::<Ordered>(),
        answer: what_if::remove,
    },
    get(
        "/api/nap/v1/cluster",
        WebRole::View,
        "The cluster at a glance",
        &[],
        json::<StatusAnswer>(),
        whole::cluster,
    ),
    get(
        "/api/nap/v1/stream",
        WebRole::View,
        "What changes, as it happens",
        &[
            field(
                "topics",
                "cluster, jobs, job:job_0007, preemptions, workers, separated by commas; the first, \
                   second and last unless said",
            ),
            field("after", "go on after the event with this ID, for who cannot say Last-Event-ID"),
        ],
        Answer::Other("text/event-stream"),
        stream::stream,
    ),
    get(
        "/api/nap/v1/timeline",
        WebRole::View,
        "Who held which slot in a window of time",
        WINDOW,
        json::<TimelineAnswer>(),
        whole::timeline,
    ),
    get(
        "/api/nap/v1/preemptions",
        WebRole::View,
        "Who took which slot from whom, in all jobs of a window of time, newest first",
        list_of!(PreemptionAnswer, LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE),
        json::<PreemptionPage>(),
        preemptions::list,
    ),
    get(
        "/api/nap/v1/preemptions/totals",
        WebRole::View,
        "What these come to: how many, how quick, what was saved and lost",
        &[LEDGER_FROM, LEDGER_UNTIL, BY, PRIMITIVE, END, QUEUE],
        json::<PreemptionTotals>(),
        preemptions::totals,
    ),
    get(
        "/api/nap/v1/preemptions/flows",
        WebRole::View,
        "From whom to whom slots were taken in a window of time, by primitive",
        list_of!(FlowAnswer, one_of("by", "queue unless said", FLOW_ENDS), LEDGER_FROM, LEDGER_UNTIL),
        json::<FlowPage>(),
        preemptions::flows,
    ),
    get(
        "/api/nap/v1/workers",
        WebRole::View,
        "The workers",
        list_of!(WorkerSummary),
        json::<WorkerPage>(),
        whole::workers,
    ),
    get(
        "/api/nap/v1/queues",
        WebRole::View,
        "The queues of the scheduler, with what is used and wanted in each",
        &[],
        json::<QueuesAnswer>(),
        whole::queues,
    ),
    get(
        "/api/nap/v1/jobs",
        WebRole::View,
        "Jobs that have not ended, then those that have, newest first",
        list_of!(
            JobSummary,
            some_of("state", "only these, separated by commas", &JobPhase::WORDS),
            field("queue", "only of this queue"),
            field("user", "only of this user"),
            field("name", "only of this name"),
            field("text", "only those with this in their ID, name, user or queue"),
            moment("from", "only those submitted then or later, in milliseconds since 1970"),
            moment("until", "only those submitted before that")
        ),
        json::<JobPage>(),
        jobs::list,
    ),
    get("/api/nap/v1/jobs/{job}", WebRole::View, "A job", &[], json::<JobStatusAnswer>(), jobs::status),
    get(
        "/api/nap/v1/jobs/{job}/counters",
        WebRole::View,
        "What it has counted",
        &[],
        json::<CountersAnswer>(),
        jobs::counters,
    ),
    get(
        "/api/nap/v1/jobs/{job}/history",
        WebRole::View,
        "All that happened to it",
        &[],
        json::<HistoryAnswer>(),
        jobs::history,
    ),
    get(
        "/api/nap/v1/jobs/{job}/events",
        WebRole::View,
        "What happened to it as a whole",
        list_of!(HistoryLine),
        json::<EventPage>(),
        jobs::events,
    ),
    get(
        "/api/nap/v1/jobs/{job}/tasks",
        WebRole::View,
        "Its tasks",
        list_of!(TaskSummary),
        json::<TaskPage>(),
        jobs::tasks,
    ),
    get(
        "/api/nap/v1/jobs/{job}/attempts",
        WebRole::View,
        "Its attempts",
        list_of!(AttemptSummary),
        json::<AttemptPage>(),
        jobs::attempts,
    ),
    get(
        "/api/nap/v1/jobs/{job}/preemptions",
        WebRole::View,
        "Who took which slot of it, and what that saved and lost",
        list_of!(PreemptionAnswer),
        json::<PreemptionPage>(),
        jobs::preemptions,
    ),
    get(
        "/api/nap/v1/jobs/{job}/timeline",
        WebRole::View,
        "The life of its attempts",
        &[field("neighbours", "true: with the attempts of other jobs at that time, as far as there is room")],
        json::<TimelineAnswer>(),
        jobs::timeline,
    ),
    get(
        "/api/nap/v1/jobs/{job}/trace.json",
        WebRole::View,
        "The same for Perfetto",
        &[],
        Answer::Other("application/json"),
        jobs::trace,
    ),
    get(
        "/api/nap/v1/jobs/{job}/report.html",
        WebRole::View,
        "All of it as one file, which needs nothing else",
        &[],
        Answer::Other("text/html"),
        jobs::report,
    ),
    get(
        "/api/nap/v1/jobs/{job}/explain",
        WebRole::View,
        "Why it does not get on",
        &[],
        json::<JobExplanation>(),
        jobs::explain,
    ),
    get(
        "/api/nap/v1/tasks/{task}/explain",
        WebRole::View,
        "Why a task does not get on",
        &[],
        json::<TaskExplanation>(),
        jobs::explain_task,
    ),
    get(
        "/api/nap/v1/attempts/{attempt}/log/{stream}",
        WebRole::View,
        "What an attempt has printed: stdout or stderr",
        &[
            bytes("offset", "from which byte on; 0 unless said"),
            bytes("limit", "how many bytes, at most 1 MiB"),
        ],
        Answer::Other("text/plain"),
        jobs::log,
    ),
    order("/api/nap/v1/jobs/{job}/kill", "Ends a job", REASON, orders::kill_job),
    order("/api/nap/v1/jobs/{job}/suspend", "Suspends a job as a whole", REASON, orders::suspend_job),
    order("/api/nap/v1/jobs/{job}/resume", "Lets a suspended job go on", REASON, orders::resume_job),
    order(
        "/api/nap/v1/jobs/{job}/hold",
        "Starts nothing of a job; what runs is let finish",
        REASON,
        orders::hold_job,
    ),
    order("/api/nap/v1/jobs/{job}/release", "Lets a held job go on", REASON, orders::release_job),
    order("/api/nap/v1/tasks/{task}/suspend", "Suspends what runs of a task", REASON, orders::suspend_task),
    order("/api/nap/v1/tasks/{task}/resume", "Lets it go on", REASON, orders::resume_task),
    order(
        "/api/nap/v1/tasks/{task}/checkpoint",
        "Saves the work of a task, and frees its slot",
        REASON,
        orders::checkpoint_task,
    ),
    order(
        "/api/nap/v1/tasks/{task}/kill",
        "Kills what runs of a task; it is tried again",
        REASON,
        orders::kill_task,
    ),
    order(
        "/api/nap/v1/workers/{worker}/drain",
        "Has a worker finish what it runs, or give it back, and leave",
        |generator| generator.subschema_for::<Drain>(),
        orders::drain,
    ),
    order("/api/nap/v1/workers/{worker}/undrain", "Has a worker that drains stay", REASON, orders::undrain),
];
