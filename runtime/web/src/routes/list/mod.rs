//! Lists: a page of what there is, and how many there are in all.
//!
//! Owns pages, and the reading of queries. Does not own what is listed, nor in which order (`sort`).

mod fields;
mod sort;

use napreduce_protocol::{AttemptSummary, HistoryLine, JobSummary, TaskSummary, WorkerSample, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use sort::SortField;

use super::call::{Call, Reply};
use super::route::{Form, QueryField, Route};
use crate::answers::{
    AttemptAnswer, EventAnswer, FlowAnswer, JobAnswer, PreemptionAnswer, TaskAnswer, WorkerAnswer,
    WorkerChangeAnswer,
};
use crate::clock::now_millis;
use crate::problem::Problem;

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 10_000;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// How many there are, on this page and all others.
    pub total: usize,
    /// What to say as `after` for the next page; nothing after the last one.
    pub next: Option<usize>,
    pub as_of_millis: u64,
    /// What is left out, and why.
    pub remarks: Vec<String>,
}

pub type JobPage = Page<JobAnswer>;
pub type WorkerPage = Page<WorkerAnswer>;
pub type WorkerChangePage = Page<WorkerChangeAnswer>;
pub type TaskPage = Page<TaskAnswer>;
pub type AttemptPage = Page<AttemptAnswer>;
pub type PreemptionPage = Page<PreemptionAnswer>;
pub type EventPage = Page<EventAnswer>;
pub type FlowPage = Page<FlowAnswer>;
/// Of items that have some of their fields alone.
pub type ThinPage = Page<Map<String, Value>>;

/// What lists are made of.
pub trait Listed: Sized + 'static {
    /// The form in which it is answered.
    type Item: Serialize + JsonSchema;
    /// What a list of them may be sorted by.
    const SORTS: &'static [SortField<Self>];

    fn item(&self) -> Self::Item;
}

/// A line for each: what it is answered as, how that is made of it, and what lists of it may be sorted by.
macro_rules! lists {
    ($($listed:ty: $item:ty = $made:path, $sorts:path;)+) => {$(
        impl Listed for $listed {
            type Item = $item;
            const SORTS: &'static [SortField<Self>] = $sorts;

            fn item(&self) -> $item {
                $made(self)
            }
        }
    )+};
}

lists! {
    JobSummary: JobAnswer = JobAnswer::from, sort::JOBS;
    TaskSummary: TaskAnswer = TaskAnswer::from, sort::TASKS;
    AttemptSummary: AttemptAnswer = AttemptAnswer::from, sort::ATTEMPTS;
    WorkerSummary: WorkerAnswer = WorkerAnswer::from, sort::WORKERS;
    WorkerSample: WorkerChangeAnswer = WorkerChangeAnswer::from, sort::WORKER_CHANGES;
    HistoryLine: EventAnswer = EventAnswer::from, sort::EVENTS;
    PreemptionAnswer: PreemptionAnswer = Clone::clone, sort::PREEMPTIONS;
    FlowAnswer: FlowAnswer = Clone::clone, sort::FLOWS;
}

/// Answers with the page that was asked for.
pub fn page<'all, T: Listed + 'all>(
    call: &Call<'_>,
    all: impl Iterator<Item = &'all T>,
) -> Result<Reply, Problem> {
    page_with(call, all, call.shown.source.remarks())
}

/// The same, of a job.
pub fn page_of<'all, T: Listed + 'all>(
    call: &Call<'_>,
    job: &JobSummary,
    all: impl Iterator<Item = &'all T>,
) -> Result<Reply, Problem> {
    // Nothing in a job goes on after its end.
    page_until(call, all, call.shown.source.remarks(), job.ended_millis.or_else(|| now_of(call)))
}

/// Until when what goes on has taken time; nothing goes on in a history.
fn now_of(call: &Call<'_>) -> Option<u64> {
    call.shown.source.is_live().then(now_millis)
}

/// The same, of something of which other things are left out.
pub fn page_with<'all, T: Listed + 'all>(
    call: &Call<'_>,
    all: impl Iterator<Item = &'all T>,
    remarks: Vec<String>,
) -> Result<Reply, Problem> {
    page_until(call, all, remarks, now_of(call))
}

fn page_until<'all, T: Listed + 'all>(
    call: &Call<'_>,
    all: impl Iterator<Item = &'all T>,
    remarks: Vec<String>,
    until_millis: Option<u64>,
) -> Result<Reply, Problem> {
    let limit = call.asked::<usize>("limit")?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::wrong(format!("limit={limit}: 1 to {LIMIT_MAX} are allowed")));
    }
    let after = call.asked::<usize>("after")?.unwrap_or(0);
    let mut all: Vec<&T> = all.collect();
    let total = all.len();
    if let Some(wanted) = call.asked::<String>("sort")? {
        all = sort::first(&all, T::SORTS, &wanted, after.saturating_add(limit), until_millis)?;
    }
    let items: Vec<T::Item> = all.iter().skip(after).take(limit).map(|item| item.item()).collect();
    let shown = after.saturating_add(items.len());
    let head = Page {
        next: (shown < total).then_some(shown),
        total,
        items: Vec::new(),
        as_of_millis: now_millis(),
        remarks,
    };
    match call.asked::<String>("fields")? {
        None => Reply::json(&Page { items, ..head }),
        Some(wanted) => {
            let Page { total, next, as_of_millis, remarks, .. } = head;
            let items = fields::thinned(&items, &wanted)?;
            Reply::json(&ThinPage { items, total, next, as_of_millis, remarks })
        }
    }
}

/// What the list of these may be sorted by.
pub const fn sort_field<T: Listed>() -> QueryField {
    let about = "by what to sort, several with commas; with - before it downwards; what has none comes last";
    let form = Form::Sort(|| T::SORTS.iter().map(|field| field.name).collect());
    QueryField { name: "sort", about, form }
}

/// Which fields the items of a list of these have.
pub const fn fields_field<T: Listed>() -> QueryField {
    let form = Form::Fields(fields::names::<T::Item>);
    QueryField { name: "fields", about: "these of the items alone, separated by commas", form }
}

/// Reads what stands behind `?`.
///
/// # Errors
/// When it says what the route does not know, since whoever says it means something.
pub fn parse_query(query: &str, route: &Route) -> Result<Vec<(String, String)>, Problem> {
    let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    for (name, _) in &fields {
        if !route.queries().any(|known| known.name == name) {
            let known: Vec<&str> = route.queries().map(|field| field.name).collect();
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            return Err(Problem::wrong(format!("the query may not say {name:?}; it may say {known}")));
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::super::table::all_routes;
    use super::*;

    fn jobs() -> &'static Route {
        all_routes().find(|route| route.path == "/api/nap/v1/jobs").expect("it is in the table")
    }

    #[test]
    fn a_query_is_read_and_what_nobody_knows_is_refused() {
        let read = parse_query("name=a%20b+c&state=failed,killed&&text=", jobs()).expect("it is known");
        let expected = [("name", "a b c"), ("state", "failed,killed"), ("text", "")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let refused = |query| parse_query(query, jobs()).expect_err(query).detail;
        assert!(
            refused("staet=failed").starts_with("the query may not say \"staet\"; it may say state, queue")
        );
    }
}
