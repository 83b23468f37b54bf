//! Paged lists: query parameters `limit`, `after`, `sort` and `fields`.

mod fields;
mod sort;

use napreduce_answers::{
    AttemptAnswer, CsvColumns, EventAnswer, FailureAnswer, FlowAnswer, GroupAnswer, JobAnswer,
    PerformanceAnswer, PreemptionAnswer, TaskRow, TaskRowAnswer, TaskTotals, WorkerAnswer,
    WorkerChangeAnswer,
};
use napreduce_protocol::{AttemptSummary, HistoryLine, JobSummary, WorkerSample, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use fields::Selection;
use sort::SortField;

use super::call::{Call, Reply, names_of, object_of};
use super::route::{Form, QueryField, Route, number, one_of};
use crate::clock::now_millis;
use crate::problem::Problem;

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 10_000;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: usize,
    /// The value of `after` for the next page; null on the last one.
    pub next: Option<usize>,
    pub as_of_millis: u64,
    /// Items left out of the list, and why.
    pub remarks: Vec<String>,
}

pub type JobPage = Page<JobAnswer>;
pub type WorkerPage = Page<WorkerAnswer>;
pub type WorkerChangePage = Page<WorkerChangeAnswer>;
pub type TaskPage = PageWith<Page<TaskRowAnswer>, TaskTotals>;
pub type AttemptPage = Page<AttemptAnswer>;
pub type PreemptionPage = Page<PreemptionAnswer>;
pub type GroupPage = Page<GroupAnswer>;
pub type EventPage = Page<EventAnswer>;
pub type PerformancePage = Page<PerformanceAnswer>;
pub type FailurePage = Page<FailureAnswer>;
pub type FlowPage = Page<FlowAnswer>;
/// A page of a list with the query parameter `fields`.
pub type ThinPage = Page<Map<String, Value>>;

/// A page of a list, and totals over the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageWith<P, T> {
    #[serde(flatten)]
    pub page: P,
    #[serde(flatten)]
    pub totals: T,
}

/// The totals of a list without any.
#[derive(Serialize)]
struct NoTotals {}

/// An item of a list.
pub trait Listed: Sized + 'static {
    /// The JSON form of the item.
    type Item: Serialize + JsonSchema;
    /// The field that is the first column of a table.
    const FIRST: &'static str;
    const SORTS: &'static [SortField<Self>];

    fn item(&self) -> Self::Item;
}

impl Listed for JobSummary {
    type Item = JobAnswer;
    const FIRST: &'static str = "job";
    const SORTS: &'static [SortField<Self>] = sort::JOBS;

    fn item(&self) -> JobAnswer {
        JobAnswer::from(self)
    }
}

impl Listed for TaskRow {
    type Item = TaskRowAnswer;
    const FIRST: &'static str = "task";
    const SORTS: &'static [SortField<Self>] = sort::TASKS;

    fn item(&self) -> TaskRowAnswer {
        self.answer()
    }
}

impl Listed for AttemptSummary {
    type Item = AttemptAnswer;
    const FIRST: &'static str = "attempt";
    const SORTS: &'static [SortField<Self>] = sort::ATTEMPTS;

    fn item(&self) -> AttemptAnswer {
        AttemptAnswer::from(self)
    }
}

impl Listed for WorkerSummary {
    type Item = WorkerAnswer;
    const FIRST: &'static str = "worker";
    const SORTS: &'static [SortField<Self>] = sort::WORKERS;

    fn item(&self) -> WorkerAnswer {
        WorkerAnswer::from(self)
    }
}

impl Listed for WorkerSample {
    type Item = WorkerChangeAnswer;
    const FIRST: &'static str = "worker";
    const SORTS: &'static [SortField<Self>] = sort::WORKER_CHANGES;

    fn item(&self) -> WorkerChangeAnswer {
        WorkerChangeAnswer::from(self)
    }
}

impl Listed for HistoryLine {
    type Item = EventAnswer;
    const FIRST: &'static str = "at_millis";
    const SORTS: &'static [SortField<Self>] = sort::EVENTS;

    fn item(&self) -> EventAnswer {
        EventAnswer::from(self)
    }
}

impl Listed for PreemptionAnswer {
    type Item = PreemptionAnswer;
    const FIRST: &'static str = "requested_micros";
    const SORTS: &'static [SortField<Self>] = sort::PREEMPTIONS;

    fn item(&self) -> PreemptionAnswer {
        self.clone()
    }
}

impl Listed for PerformanceAnswer {
    type Item = PerformanceAnswer;
    const FIRST: &'static str = "worker";
    const SORTS: &'static [SortField<Self>] = sort::PERFORMANCE;

    fn item(&self) -> PerformanceAnswer {
        self.clone()
    }
}

impl Listed for FailureAnswer {
    type Item = FailureAnswer;
    const FIRST: &'static str = "attempt";
    const SORTS: &'static [SortField<Self>] = sort::FAILURES;

    fn item(&self) -> FailureAnswer {
        self.clone()
    }
}

impl Listed for GroupAnswer {
    type Item = GroupAnswer;
    const FIRST: &'static str = "group";
    const SORTS: &'static [SortField<Self>] = sort::GROUPS;

    fn item(&self) -> GroupAnswer {
        self.clone()
    }
}

impl Listed for FlowAnswer {
    type Item = FlowAnswer;
    const FIRST: &'static str = "from";
    const SORTS: &'static [SortField<Self>] = sort::FLOWS;

    fn item(&self) -> FlowAnswer {
        self.clone()
    }
}

/// Answers with the requested page of a list.
pub fn page<'all, T: Listed + 'all>(
    call: &Call<'_>,
    all: impl Iterator<Item = &'all T>,
) -> Result<Reply, Problem> {
    page_with(call, all, call.shown.source.remarks())
}

/// Answers with the requested page of a list that belongs to a job.
pub fn page_of<'all, T: Listed + 'all>(
    call: &Call<'_>,
    job: &JobSummary,
    all: impl Iterator<Item = &'all T>,
) -> Result<Reply, Problem> {
    // The duration of an open item ends with the job at the latest.
    page_until(
        call,
        all,
        call.shown.source.remarks(),
        open_until(call, job),
    )
}

/// The moment at which open items of a job end; `None` in a history if the job has no end.
pub fn open_until(call: &Call<'_>, job: &JobSummary) -> Option<u64> {
    job.ended_millis.or_else(|| now_of(call))
}

/// Answers with the requested page of the tasks of a job; by default running tasks come first, then failed ones.
pub fn page_of_tasks(
    call: &Call<'_>,
    tasks: Vec<&TaskRow>,
    totals: &TaskTotals,
) -> Result<Reply, Problem> {
    let sort = call
        .query_value("sort")?
        .unwrap_or_else(|| "rank,-took".to_owned());
    pages(
        call,
        tasks,
        call.shown.source.remarks(),
        Some(sort),
        None,
        totals,
    )
}

/// The moment at which open items end for sorting; `None` in a history, where nothing runs.
fn now_of(call: &Call<'_>) -> Option<u64> {
    call.shown.source.is_live().then(now_millis)
}

/// Answers with the requested page and with these remarks.
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
    pages(
        call,
        all.collect(),
        remarks,
        call.query_value("sort")?,
        until_millis,
        &NoTotals {},
    )
}

fn pages<T: Listed>(
    call: &Call<'_>,
    mut all: Vec<&T>,
    remarks: Vec<String>,
    sort: Option<String>,
    until_millis: Option<u64>,
    totals: &impl Serialize,
) -> Result<Reply, Problem> {
    let is_csv = is_csv(call)?;
    let limit = match call.query_value::<usize>("limit")? {
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => limit,
        Some(limit) => {
            return Err(Problem::invalid(format!(
                "limit is {limit}; expected 1 to {LIMIT_MAX}"
            )));
        }
        // A table has no `next` that would name the rows that are left out.
        None if is_csv => all.len(),
        None => LIMIT,
    };
    let after = call.query_value::<usize>("after")?.unwrap_or(0);
    let total = all.len();
    if let Some(wanted) = sort {
        all = sort::first(
            &all,
            T::SORTS,
            &wanted,
            after.saturating_add(limit),
            until_millis,
        )?;
    }
    let page = all.get(after..).unwrap_or_default();
    let page = &page[..page.len().min(limit)];
    let fields = call.query_value::<String>("fields")?;
    let selection = match &fields {
        None => None,
        Some(wanted) => Some(Selection::new::<T::Item>(wanted)?),
    };
    if is_csv {
        let text = csv_of_page(page, selection.as_ref())?;
        return Ok(Reply::csv_text(last_part(call.route), text));
    }
    let shown = after.saturating_add(page.len());
    let head = Page {
        next: (shown < total).then_some(shown),
        total,
        items: Vec::new(),
        as_of_millis: now_millis(),
        remarks,
    };
    let Some(selection) = selection else {
        let items = page.iter().map(|item| item.item()).collect();
        return Reply::json(&PageWith {
            page: Page { items, ..head },
            totals,
        });
    };
    let mut items = Vec::with_capacity(page.len());
    for item in page {
        items.push(selection.select(&item.item())?);
    }
    let page = ThinPage {
        items,
        total,
        next: head.next,
        as_of_millis: head.as_of_millis,
        remarks: head.remarks,
    };
    Reply::json(&PageWith { page, totals })
}

/// Formats items as comma-separated values. Each is converted twice, since all of them as JSON take much more memory
/// than the text.
fn csv_of_page<T: Listed>(
    page: &[&T],
    selection: Option<&Selection<'_>>,
) -> Result<String, Problem> {
    let row = |item: &T| match selection {
        None => object_of(&item.item()),
        Some(selection) => selection.select(&item.item()),
    };
    let names = match selection {
        None => names_of::<T::Item>(),
        Some(selection) => selection.names(),
    };
    let mut columns = CsvColumns::new(&names);
    for item in page {
        columns.add(&row(item)?);
    }
    let mut table = columns.into_table(T::FIRST);
    for item in page {
        table.push(&row(item)?);
    }
    Ok(table.into_text())
}

/// Whether a table is wanted as comma-separated values.
pub fn is_csv(call: &Call<'_>) -> Result<bool, Problem> {
    match call.query_value::<String>(FORMAT.name)?.as_deref() {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(other) => Err(Problem::invalid(format!(
            "format={other}: expected json or csv"
        ))),
    }
}

/// The last fixed part of a route's path, such as `jobs`.
fn last_part(path: &str) -> &str {
    path.rsplit('/')
        .find(|part| !part.starts_with('{'))
        .unwrap_or_default()
}

/// The format of a table.
pub const FORMAT: QueryField = one_of(
    "format",
    "csv: comma-separated values with a header, nested fields as map.tasks, and a leading ' in texts that a spreadsheet \
     would take for a formula; default: json",
    &["json", "csv"],
);

/// The query parameters of a list of `T`.
pub const fn page_fields<T: Listed>() -> [QueryField; 5] {
    [
        QueryField {
            name: "sort",
            about: "fields to sort by, separated by commas; a leading - sorts descending; items without a value come last",
            form: Form::Sort(|| T::SORTS.iter().map(|field| field.name).collect()),
        },
        QueryField {
            name: "fields",
            about: "return only these fields of each item, separated by commas",
            form: Form::Fields(names_of::<T::Item>),
        },
        number(
            "limit",
            "number of items, 1 to 10000; default: 100, as csv all",
            1,
            10_000,
        ),
        number(
            "after",
            "the `next` of the previous page: the number of items before it in the list of this moment",
            0,
            u64::MAX,
        ),
        FORMAT,
    ]
}

/// Parses the query string.
///
/// # Errors
/// `400` if a parameter is unknown: ignoring a misspelled filter would return the wrong items.
pub fn parse_query(query: &str, route: &Route) -> Result<Vec<(String, String)>, Problem> {
    let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    for (name, _) in &fields {
        if !route.queries().any(|known| known.name == name) {
            let known: Vec<&str> = route.queries().map(|field| field.name).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Err(Problem::invalid(format!(
                "unknown query parameter {name:?}; expected {known}"
            )));
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::super::table::all_routes;
    use super::*;

    fn jobs() -> &'static Route {
        all_routes()
            .find(|route| route.path == "/api/nap/v1/jobs")
            .expect("route exists")
    }

    #[test]
    fn parse_query_decodes_and_rejects_unknown_parameters() {
        let read = parse_query("name=a%20b+c&state=failed,killed&&text=", jobs())
            .expect("known parameters");
        let expected = [("name", "a b c"), ("state", "failed,killed"), ("text", "")];
        assert_eq!(
            read,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let refused = |query| parse_query(query, jobs()).expect_err(query).detail;
        assert!(
            refused("staet=failed")
                .starts_with("unknown query parameter \"staet\"; expected state, queue")
        );
    }
}
